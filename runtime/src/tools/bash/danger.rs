//! A short list of commands that destroy beyond the workspace, and commands that name a protected
//! file: both are asked in every mode.
//!
//! It is a warning, not a sandbox: it looks at the words of the command as written, and whoever
//! wants to get around it can. Keep it short; the mode and the person are the protection.

use std::path::Path;

use crate::tools::protected::why_named;

/// Programs that only run what follows them.
const PREFIXES: [&str; 9] =
    ["sudo", "doas", "command", "exec", "nohup", "time", "env", "xargs", "setsid"];
/// Programs that write only where their output is redirected to.
const READERS: [&str; 19] = [
    "cat", "ls", "head", "tail", "less", "file", "stat", "wc", "grep", "rg", "find", "test", "[",
    "diff", "cmp", "du", "echo", "printf", "true",
];

/// Programs that run a script that is one of their words.
const SHELLS: [&str; 5] = ["bash", "sh", "dash", "zsh", "eval"];

/// Why this command is asked in every mode: it destroys.
pub(super) fn why_destructive(command: &str) -> Option<String> {
    let dense: String = command.chars().filter(|c| !c.is_whitespace()).collect();
    if dense.contains(":(){:|:") {
        return Some("this is a fork bomb: it fills the machine with processes".to_owned());
    }
    let mut folder = String::new();
    simple_commands(command).iter().find_map(|words| {
        if let Some(("cd" | "pushd", arguments)) = program(words) {
            let target = arguments.iter().find(|word| !word.starts_with('-'));
            folder = from(&folder, target.map_or("~", String::as_str));
        }
        check(words, &folder)
    })
}

/// Why this command is asked in every mode: it names a protected file, and may change it.
pub(super) fn why_protected(root: &Path, command: &str) -> Option<String> {
    simple_commands(command).iter().find_map(|words| {
        let (program, arguments) = program(words)?;
        if SHELLS.contains(&program) {
            let scripts = arguments.iter().filter(|word| word.contains(char::is_whitespace));
            if let Some(why) = scripts.map(String::as_str).find_map(|s| why_protected(root, s)) {
                return Some(why);
            }
        }
        let named = |word: &str| {
            // A name also follows an option, a scheme or a redirection. Messages of commits are
            // prose; anything else with blanks in it may be a program.
            let ends =
                |c: char| "=:,;<>|&()'\"`{}".contains(c) || (program != "git" && c.is_whitespace());
            word.split(ends).find_map(|part| why_named(root, part))
        };
        let reads = READERS.contains(&program) && !(program == "find" && find_acts(arguments));
        if reads {
            redirected(words).find_map(named)
        } else {
            words.iter().map(String::as_str).find_map(named)
        }
    })
}

/// What a simple command runs, and with what.
fn program(words: &[String]) -> Option<(&str, &[String])> {
    let start = words.iter().position(|word| {
        !PREFIXES.contains(&base(word)) && !word.contains('=') && !word.starts_with('-')
    })?;
    Some((base(&words[start]), &words[start + 1..]))
}

/// Whether this `find` does more than look.
fn find_acts(arguments: &[String]) -> bool {
    let acts = ["-delete", "-exec", "-execdir", "-ok", "-okdir"];
    arguments.iter().any(|word| acts.contains(&word.as_str()) || word.starts_with("-fprint"))
}

/// Whether this `find` removes what it finds.
fn find_removes(arguments: &[String]) -> bool {
    find_acts(arguments)
        && arguments.iter().any(|word| word == "-delete" || ["rm", "shred"].contains(&base(word)))
}

/// A path as seen from the folder that a script went to.
fn from(folder: &str, path: &str) -> String {
    if folder.is_empty() || path.starts_with(['/', '~', '$']) {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    }
}

/// Checks a simple command that runs in `folder`; empty is the workspace.
fn check(words: &[String], folder: &str) -> Option<String> {
    let (program, arguments) = program(words)?;
    let has_flag = |short: &[char], long: &str| {
        arguments.iter().any(|word| {
            word == long
                || (word.starts_with('-') && !word.starts_with("--") && word.contains(short))
        })
    };
    match program {
        "rm" | "chmod" | "chown" | "chgrp" if has_flag(&['r', 'R'], "--recursive") => {
            let mut targets = arguments.iter().filter(|word| !word.starts_with('-'));
            if let Some(target) = targets.find(|word| reaches_beyond(&from(folder, word))) {
                let target = from(folder, target);
                return Some(format!("{program} goes through {target} and everything below it"));
            }
        }
        "find" if find_removes(arguments) => {
            let is_test = |word: &String| word.starts_with(['-', '(', '!']);
            let starts = arguments.iter().take_while(|word| !is_test(word));
            if let Some(start) =
                starts.map(|start| from(folder, start)).find(|start| reaches_beyond(start))
            {
                return Some(format!("find deletes what it finds below {start}"));
            }
        }
        "dd" => {
            if let Some(device) = arguments
                .iter()
                .filter_map(|word| word.strip_prefix("of="))
                .find(|path| is_device(path))
            {
                return Some(format!("dd writes directly to the device {device}"));
            }
        }
        _ if SHELLS.contains(&program) => {
            // The script is one quoted word; each level is shorter than the one around it.
            let scripts = arguments.iter().filter(|word| word.contains(char::is_whitespace));
            if let Some(warning) = scripts.map(String::as_str).find_map(why_destructive) {
                return Some(warning);
            }
        }
        "git" => {
            if let Some(warning) = check_git(arguments) {
                return Some(warning);
            }
        }
        _ if program == "mkfs" || program.starts_with("mkfs.") => {
            return Some(format!("{program} makes a new file system and destroys what is there"));
        }
        _ => {}
    }
    if let Some(device) = redirected(words).find(|path| is_device(path)) {
        return Some(format!("it writes directly to the device {device}"));
    }
    let names_hooks = |word: &str| word.to_ascii_lowercase().contains(".git/hooks");
    let writes = redirected(words).any(names_hooks)
        || (!READERS.contains(&program) && arguments.iter().any(|word| names_hooks(word)));
    writes.then(|| "it may write git hooks, which git runs later without a question".to_owned())
}

fn check_git(arguments: &[String]) -> Option<String> {
    let at = |name: &str| arguments.iter().position(|word| word == name);
    if let Some(push) = at("push") {
        let forces = |word: &String| {
            word.starts_with("--force")
                || word == "--mirror"
                || word.starts_with('+')
                || (word.starts_with('-') && !word.starts_with("--") && word.contains('f'))
        };
        if arguments[push..].iter().any(forces) {
            return Some("git push overwrites what others may already have".to_owned());
        }
    }
    let sets_hooks = |word: &String| word.to_ascii_lowercase().contains("core.hookspath");
    (at("config").is_some() && arguments.iter().any(sets_hooks))
        .then(|| "it changes where git finds its hooks".to_owned())
}

/// The root or the home folder, what lies directly below them, or what lies above the workspace.
fn reaches_beyond(word: &str) -> bool {
    let path = word.trim_end_matches(['*', '.']).trim_end_matches('/');
    let above = word.split('/').all(|part| part == ".." || part == "*" || part.is_empty())
        && word.contains("..");
    let below = ["~", "$HOME", "${HOME}", ""].into_iter().find_map(|start| {
        let rest = path.strip_prefix(start)?;
        // An empty path is the root only when it was one: "." is where the command runs.
        let is_whole = rest.is_empty() && (!start.is_empty() || word.starts_with('/'));
        (is_whole || rest.starts_with('/')).then_some(rest)
    });
    above || below.is_some_and(|rest| depth(rest) <= 1)
}

/// Folders between a path and where it begins.
fn depth(path: &str) -> usize {
    path.split('/').fold(0, |depth: usize, part| match part {
        "" | "." => depth,
        ".." => depth.saturating_sub(1),
        _ => depth + 1,
    })
}

fn is_device(path: &str) -> bool {
    let harmless = ["null", "zero", "full", "tty", "stdout", "stderr", "fd", "shm", "pts"];
    path.strip_prefix("/dev/")
        .is_some_and(|name| !harmless.contains(&name.split('/').next().unwrap_or(name)))
}

/// The targets of the redirections among the words.
fn redirected(words: &[String]) -> impl Iterator<Item = &str> {
    words.iter().enumerate().filter_map(|(at, word)| {
        let (_, target) = word.rsplit_once('>')?;
        let target = target.trim_start_matches('|');
        if target.is_empty() { words.get(at + 1).map(String::as_str) } else { Some(target) }
    })
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The simple commands of a script, each as its words without quotes. Coarse on purpose: quotes
/// and the characters that end a command are all that it knows of the shell.
fn simple_commands(script: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let mut quote = None;
    let mut chars = script.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None | Some('"'), '\\') => word.extend(chars.next().filter(|next| *next != '\n')),
            // Commands also hide in substitutions, quoted or not.
            (None | Some('"'), '`') => end_command(&mut commands, &mut words, &mut word),
            (None | Some('"'), '$') if chars.peek() == Some(&'(') => {
                chars.next();
                end_command(&mut commands, &mut words, &mut word);
            }
            (None, '|') if word.ends_with('>') => word.push(c),
            (None, '&') if word.ends_with('>') || chars.peek() == Some(&'>') => {}
            (None, ';' | '|' | '&' | '\n' | '(' | ')') => {
                end_command(&mut commands, &mut words, &mut word);
            }
            (None, _) if c.is_whitespace() => end_word(&mut words, &mut word),
            _ => word.push(c),
        }
    }
    end_command(&mut commands, &mut words, &mut word);
    commands
}

fn end_word(words: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

fn end_command(commands: &mut Vec<Vec<String>>, words: &mut Vec<String>, word: &mut String) {
    end_word(words, word);
    if !words.is_empty() {
        commands.push(std::mem::take(words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_names_a_protected_file_is_asked_unless_it_only_looks() {
        for (command, expected) in [
            ("echo x > .env", true),
            ("echo x>.env", true),
            ("echo z >> .claw/settings.json", true),
            ("printf '%s' x | tee '.claw/settings.local.json'", true),
            ("cp other \".git/config\"", true),
            ("cp other ./.GIT./config", true),
            ("sudo dd if=x of=.git/config", true),
            ("sed -i s/a/b/ ~/.bashrc", true),
            ("bash -c 'echo x > .env'", true),
            ("python3 -c \"open('.env', 'w')\"", true),
            ("rm -rf .git", true),
            ("cd .git && touch x", true),
            ("find .git -name x -delete", true),
            ("npm set x --userconfig=sub/.npmrc", true),
            ("echo x > /home/me/.claude/tree/.env", true),
            ("cat .env", false),
            ("grep -rn x .claude --exclude-dir=.git", false),
            ("find . -not -path './.git/*' -name '*.rs'", false),
            ("echo .env >> .gitignore", false),
            ("git commit -m 'Read .env at the start'", false),
            ("git add .github src/environment.rs", false),
            ("touch /home/me/.claude/tree/src/lib.rs", false),
            ("cargo test", false),
        ] {
            let got = why_protected(Path::new("/home/me/.claude/tree"), command);
            assert_eq!(got.is_some(), expected, "{command}: {got:?}");
        }
    }

    #[test]
    fn commands_that_destroy_beyond_the_workspace_are_asked_and_ordinary_ones_are_not() {
        for (command, expected) in [
            ("rm -rf /", true),
            ("sudo rm -fr /*", true),
            ("cd x && rm -r -f ~", true),
            ("rm -rf \"$HOME\"/", true),
            ("rm -rf ~/*", true),
            ("rm --recursive /etc", true),
            ("rm -rf ..", true),
            ("rm -rf ../../*", true),
            ("echo $(rm -rf /)", true),
            ("FOO=1 /bin/rm -rf /usr", true),
            ("bash -c \"rm -rf /\"", true),
            ("sudo sh -c 'cd /; eval \"rm -rf ~\"'", true),
            ("bash -c 'echo fine'", false),
            ("chmod -R 777 /", true),
            ("mkfs.ext4 /dev/sda1", true),
            ("dd if=image of=/dev/sda bs=1M", true),
            ("cat image > /dev/sda", true),
            ("cat image >/dev/nvme0n1", true),
            (":(){ :|:& };:", true),
            ("git push --force origin main", true),
            ("git push -f", true),
            ("git -C sub push origin +main", true),
            ("echo x > .git/hooks/pre-commit", true),
            ("cp hook .git/hooks/post-merge", true),
            ("git config core.hooksPath hooks", true),
            ("cd / && rm -rf ./x", true),
            ("cd ~; rm -rf x", true),
            ("cd && rm -r .", true),
            ("\\rm -rf $HOME/x", true),
            ("find /x -delete", true),
            ("find ~ -name '*.o' -exec rm {} +", true),
            ("cd src && rm -rf ./x", false),
            ("rm -rf .", false),
            ("rm -rf ~/project/target", false),
            ("find . -name '*.o' -delete", false),
            ("find / -name '*.o'", false),
            ("rm -rf target", false),
            ("rm -rf ./build/*", false),
            ("rm -rf ../sibling/target", false),
            ("rm -rf /tmp/scratch/x", false),
            ("rm /etc", false),
            ("echo 'rm -rf /'", false),
            ("grep -r 'rm -rf /' docs", false),
            ("dd if=/dev/zero of=file", false),
            ("cargo test > /dev/null 2>&1", false),
            ("cargo test &> /dev/null", false),
            ("git push origin feature", false),
            ("git push --follow-tags", false),
            ("ls .git/hooks", false),
            ("chmod -R u+w src", false),
            ("", false),
        ] {
            let got = why_destructive(command);
            assert_eq!(got.is_some(), expected, "{command}: {got:?}");
        }
    }
}
