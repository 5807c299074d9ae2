//! The command line: the options that a worker uses, each unknown one refused as the CLI does.

use crate::version::Version;

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub version: bool,
    pub print: bool,
    pub session_id: Option<String>,
    pub resume: Option<String>,
    pub continue_latest: bool,
    pub fork: bool,
    /// Files or JSON texts, in order.
    pub settings: Vec<String>,
    pub permission_mode: Option<String>,
    pub skip_permissions: bool,
    pub model: Option<String>,
    pub system_prompt: Option<String>,
    pub allowed_tools: Vec<String>,
    pub disallowed_tools: Vec<String>,
    pub input_format: Option<String>,
    pub output_format: Option<String>,
    pub partial_messages: bool,
    pub permission_prompt_tool: Option<String>,
    pub replay_user_messages: bool,
    pub verbose: bool,
    pub prompt: Option<String>,
}

/// Options with a value that changes nothing here.
const VALUED: [&str; 14] = [
    "--add-dir",
    "--agent",
    "--agents",
    "--append-system-prompt",
    "--betas",
    "--debug-file",
    "--effort",
    "--fallback-model",
    "--max-turns",
    "--mcp-config",
    "--name",
    "--plugin-dir",
    "--setting-sources",
    "--system-prompt-file",
];
/// Options with any number of values.
const VARIADIC: [&str; 7] = [
    "--add-dir",
    "--allowedTools",
    "--allowed-tools",
    "--betas",
    "--disallowedTools",
    "--disallowed-tools",
    "--mcp-config",
];
/// Options without a value that change nothing here.
const FLAGS: [&str; 7] = [
    "--bare",
    "--debug",
    "--disable-slash-commands",
    "--ide",
    "--no-session-persistence",
    "--strict-mcp-config",
    "-d",
];

impl Options {
    /// Reads the arguments after the program's name. The error is what the CLI prints.
    pub fn parse(
        arguments: impl IntoIterator<Item = String>,
        version: Version,
    ) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = arguments.into_iter().peekable();
        while let Some(argument) = rest.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => {
                    (name.to_owned(), Some(value.to_owned()))
                }
                _ => (argument, None),
            };
            if options.flag(&name) {
                continue;
            }
            if !name.starts_with('-') || name == "-" {
                options.prompt = Some(name);
                continue;
            }
            if !takes_value(&name) {
                return Err(format!("error: unknown option '{name}'"));
            }
            let value = inline
                .or_else(|| rest.next())
                .ok_or_else(|| format!("error: option '{name} <value>' argument missing"))?;
            options.value(&name, value, version)?;
            // These take every value that follows, even what was meant as the prompt.
            while VARIADIC.contains(&name.as_str())
                && let Some(more) = rest.next_if(|next| !next.starts_with('-'))
            {
                options.value(&name, more, version)?;
            }
        }
        options.check()?;
        Ok(options)
    }

    fn flag(&mut self, name: &str) -> bool {
        match name {
            "--version" | "-v" => self.version = true,
            "--print" | "-p" => self.print = true,
            "--continue" | "-c" => self.continue_latest = true,
            "--fork-session" => self.fork = true,
            "--dangerously-skip-permissions" => self.skip_permissions = true,
            "--include-partial-messages" => self.partial_messages = true,
            "--replay-user-messages" => self.replay_user_messages = true,
            "--verbose" => self.verbose = true,
            _ => return FLAGS.contains(&name),
        }
        true
    }

    fn value(&mut self, name: &str, value: String, version: Version) -> Result<(), String> {
        match name {
            "--session-id" => {
                if uuid::Uuid::parse_str(&value).is_err() {
                    return Err("Error: Invalid session ID. Must be a valid UUID.".to_owned());
                }
                self.session_id = Some(value);
            }
            "--resume" | "-r" => self.resume = Some(value),
            "--settings" => self.settings.push(value),
            "--permission-mode" => {
                if !version.permission_modes().contains(&value.as_str()) {
                    return Err(format!(
                        "error: option '--permission-mode <mode>' argument '{value}' is invalid. \
                         Allowed choices are {}.",
                        version.permission_modes().join(", ")
                    ));
                }
                self.permission_mode = Some(value);
            }
            "--model" => self.model = Some(value),
            "--system-prompt" => self.system_prompt = Some(value),
            "--allowedTools" | "--allowed-tools" => self.allowed_tools.extend(names(&value)),
            "--disallowedTools" | "--disallowed-tools" => {
                self.disallowed_tools.extend(names(&value));
            }
            "--input-format" => self.input_format = Some(value),
            "--output-format" => self.output_format = Some(value),
            "--permission-prompt-tool" => self.permission_prompt_tool = Some(value),
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let stream_json = |format: &Option<String>| format.as_deref() == Some("stream-json");
        if self.print && stream_json(&self.output_format) && !self.verbose {
            return Err(
                "Error: When using --print, --output-format=stream-json requires --verbose"
                    .to_owned(),
            );
        }
        if stream_json(&self.input_format) && !stream_json(&self.output_format) {
            return Err(
                "Error: --input-format=stream-json requires output-format=stream-json.".to_owned()
            );
        }
        if self.session_id.is_some()
            && (self.resume.is_some() || self.continue_latest)
            && !self.fork
        {
            return Err("Error: --session-id can only be used with --continue or --resume if \
                        --fork-session is also specified."
                .to_owned());
        }
        Ok(())
    }
}

fn takes_value(name: &str) -> bool {
    let used = [
        "--session-id",
        "--resume",
        "-r",
        "--settings",
        "--permission-mode",
        "--model",
        "--system-prompt",
        "--allowedTools",
        "--allowed-tools",
        "--disallowedTools",
        "--disallowed-tools",
        "--input-format",
        "--output-format",
        "--permission-prompt-tool",
    ];
    used.contains(&name) || VALUED.contains(&name)
}

/// Names in a list of tools, by comma or blank outside parentheses.
fn names(list: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let mut found = vec![String::new()];
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ',' || c == ' ') {
            found.push(String::new());
        } else if let Some(last) = found.last_mut() {
            last.push(c);
        }
    }
    found.retain(|name| !name.is_empty());
    found
}
