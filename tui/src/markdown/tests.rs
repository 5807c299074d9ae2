//! Markdown as it looks, at 80 columns and in narrow places.

use ratatui::style::Modifier;
use ratatui::text::Line;

use super::*;

fn lines(source: &str, width: u16) -> Vec<Line<'static>> {
    render(source, width, &Theme::dark(), &mut PlainCode)
}

fn shown(source: &str, width: u16) -> String {
    lines(source, width).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Style of the first span that holds `text`.
fn style_of(source: &str, text: &str) -> ratatui::style::Style {
    lines(source, 80)
        .iter()
        .flat_map(|line| line.spans.clone())
        .find(|span| span.content.contains(text))
        .unwrap_or_else(|| panic!("{text:?} is not shown"))
        .style
}

#[test]
fn every_construct_has_its_look() {
    let source = "\
# Title
Text with **bold**, *emphasis*, ~~gone~~, `code` and a
soft break, then a hard one\\
here. A [link](https://example.org/a), <https://example.org/b>, ![picture](p.png).

Steps:
1. first
2. second
   - nested
     - deeper

   and more
10. tenth

- [ ] open
- [x] done

> quoted
> text
>
> > deeper
> - item

---

Inline <b>html</b> and a note[^n].

<div>
block html
</div>

[^n]: What the note says.
";
    insta::assert_snapshot!(shown(source, 80), @r"
    Title

    Text with bold, emphasis, gone, code and a soft break, then a hard one
    here. A link (https://example.org/a), https://example.org/b, [image] picture
    (p.png).

    Steps:
    1. first

    2. second

       ◦ nested
         ◦ deeper

       and more

    3. tenth

    ☐ open
    ☑ done

    │ quoted text
    │
    │ │ deeper
    │
    │ • item

    ────────────────────────────────────────

    Inline <b>html</b> and a note[^n].

    <div>
    block html
    </div>

    [^n]: What the note says.
    ");
}

#[test]
fn styles_say_what_the_text_is() {
    let theme = Theme::dark();
    assert_eq!(style_of("# head", "head"), theme.heading(1));
    assert_eq!(style_of("### head", "head"), theme.heading(3));
    assert_eq!(style_of("a **b**", "b"), theme.strong);
    assert_eq!(style_of("a *b*", "b"), theme.emphasis);
    assert_eq!(style_of("a ~~b~~", "b"), theme.strikethrough);
    assert_eq!(style_of("a `b`", "b"), theme.code);
    let both = style_of("a ***b***", "b").add_modifier;
    assert!(both.contains(Modifier::BOLD | Modifier::ITALIC));
    assert_eq!(style_of("[b](c)", "b"), theme.link);
    assert_eq!(style_of("[b](c)", "(c)"), theme.link_address);
    assert_eq!(style_of("> b", "b"), theme.quote);
}

#[test]
fn code_lines_stand_at_column_0_and_are_exactly_what_was_written() {
    let code = "key:\n  - one\n\n      deep:   \"x\"\nend";
    for (before, after) in [("", ""), ("- item\n\n", "  "), ("> ", "> ")] {
        let indented: Vec<String> = code.lines().map(|line| format!("{after}{line}")).collect();
        let indented = indented.join(
            "
",
        ) + "
";
        let source = if before == "> " {
            format!("> ```yaml\n{indented}> ```\n")
        } else {
            format!("{before}{after}```yaml\n{indented}{after}```\n")
        };
        let screen = shown(&source, 80);
        assert!(screen.contains(code), "{screen}");
    }
}

#[test]
fn long_code_lines_wrap_hard_and_lose_nothing() {
    let command = "cargo test --workspace ".repeat(13);
    let screen = shown(&format!("```sh\n{command}\n```\n"), 40);
    assert_eq!(screen.lines().skip(1).collect::<String>(), command);
}

#[test]
fn code_is_copied_exactly_as_it_was_written() {
    let long = "x".repeat(300);
    let source = format!("a\n\n```sh\n{long}\n```\n\n- b\n\n  ```yaml\n  k:\n    - v\n  ```\n");
    assert_eq!(code_blocks(&source), [long.as_str(), "k:\n  - v"]);
    assert!(code_blocks("no `code`").is_empty());
}

#[test]
fn tables_fit_the_width() {
    let source = "\
| Name | What it does | Count |
|:-----|:------------:|------:|
| alpha | reads a file and says what is in it | 1 |
| `b` | 漢字 | 12345 |
| only |
";
    insta::assert_snapshot!(shown(source, 80), @r"
    Name  │            What it does             │ Count
    ──────┼─────────────────────────────────────┼──────
    alpha │ reads a file and says what is in it │     1
    b     │                漢字                 │ 12345
    only  │                                     │
    ");
    insta::assert_snapshot!(shown(source, 30), @r"
    Name  │  What it does  │ Count
    ──────┼────────────────┼──────
    alpha │  reads a file  │     1
          │ and says what  │ 
          │    is in it    │ 
    b     │      漢字      │ 12345
    only  │                │
    ");
    insta::assert_snapshot!(shown(source, 16), @r"
    Name: alpha
    What it does:
    reads a file and
    says what is in
    it
    Count: 1

    Name: b
    What it does: 漢
    字
    Count: 12345

    Name: only
    ");
}

#[test]
fn deep_nesting_keeps_room_for_text() {
    let source = "- a\n  - b\n    - c\n      - d\n        - e\n          - a longer text\n";
    insta::assert_snapshot!(shown(source, 16), @r"
    • a
      ◦ b
        ◦ c
          ◦ d
          ◦ e
          ◦ a longer
            text
    ");
}

#[test]
fn loose_lists_keep_their_blank_lines_and_tight_ones_have_none() {
    insta::assert_snapshot!(shown("- a\n- b\n\nthen\n\n- c\n\n- d\n\n  more\n", 80), @r"
    • a
    • b

    then

    • c

    • d

      more
    ");
}

#[test]
fn nothing_that_is_not_markdown_is_lost() {
    for (source, expected) in [
        ("a\n\n\n\nb", "a\n\nb"),
        ("5 * 3 * 2 and snake_case_name", "5 * 3 * 2 and snake_case_name"),
        ("$x$ &amp; &lt;", "$x$ & <"),
        ("-", "• "),
        ("C:\\new\\table", "C:\\new\\table"),
        ("a  \nb", "a\nb"),
        ("```\n```", ""),
        ("", ""),
        ("[]()", ""),
    ] {
        assert_eq!(shown(source, 80), expected, "{source:?}");
    }
}

#[test]
fn without_colours_code_keeps_its_backticks() {
    let lines = render("a `b`", 80, &Theme::plain(), &mut PlainCode);
    assert_eq!(lines[0].to_string(), "a `b`");
}

/// Colours every whole line as a keyword, or says that it will.
struct Later(bool);

impl CodeColours for Later {
    fn colours(&mut self, _language: &str, code: &str, _open: bool) -> Colours {
        if !self.0 {
            return Colours::Pending(None);
        }
        let lines = code.lines().map(|line| {
            // Roles longer than the line must not matter.
            vec![(1, CodeRole::Keyword), (u32::try_from(line.len()).unwrap(), CodeRole::Text)]
        });
        Colours::Ready(Arc::new(ColouredCode { lines: lines.collect() }))
    }
}

#[test]
fn colours_change_no_width() {
    let source = "```rust\nfn main() { let long = \"wraps here and there\"; }\n\nü漢字\n```\n";
    let theme = Theme::dark();
    let plain = render_blocks(source, 20, &theme, &mut Later(false), false);
    assert!(plain.blocks[0].pending);
    let coloured = render_blocks(source, 20, &theme, &mut Later(true), false);
    assert!(!coloured.blocks[0].pending);
    let text = |block: &Block| block.lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(text(&plain.blocks[0]), text(&coloured.blocks[0]));
    assert_eq!(coloured.blocks[0].lines[1].spans[0].style, theme.code_role(CodeRole::Keyword));
}
