use super::*;

fn prompt(text: &str, source: PromptSource, images: usize) -> Record {
    let fact = Fact::Prompt { prompt_id: None, text: text.to_owned(), source };
    Record { images, facts: vec![fact], ..Record::default() }
}

fn typed(text: &str) -> Record {
    prompt(text, PromptSource::Typed, 0)
}

fn hidden(text: &str) -> Record {
    prompt(text, PromptSource::Hidden, 0)
}

/// What came of the last of these records.
fn last(mut echo: PromptEcho, records: &[Record]) -> Echo {
    records.iter().map(|record| echo.offer(record)).last().unwrap()
}

fn check(sent: &str, seen: &str, expected: bool) {
    let echo = PromptEcho::new(sent).offer(&typed(seen));
    assert_eq!(echo == Echo::Yes, expected, "{sent:?} against {seen:?}: {echo:?}");
}

#[test]
fn a_prompt_is_known_again_through_the_rewriting_of_the_cli() {
    check("please do it", "please do it", true);
    check("a\tb", "a    b", true);
    check("a\r\nb\rc", "a\nb\nc", true);
    check("text \n\n", "text", true);
    check("e\u{301}", "\u{e9}", true);
    check("zero\u{200b}width", "zerowidth", true);
    let long = "line\n".repeat(6);
    let wrapped = format!(
        "\n\n<pasted_content id=\"ec7d\">\n{}\n</pasted_content id=\"ec7d\">\n",
        long.trim_end()
    );
    check(&long, &wrapped, true);
    check(&format!("{long}more"), &wrapped, false);
}

#[test]
fn short_prompts_match_nothing_but_themselves() {
    for sent in ["1", "ok"] {
        check(sent, sent, true);
        check(sent, "it is ok, 1 of 1", false);
        check(sent, "[Image #1]", false);
        let notice = format!("<task-notification><summary>{sent}</summary></task-notification>");
        for text in [notice.as_str(), sent] {
            for source in [
                PromptSource::Notification,
                PromptSource::Hidden,
                PromptSource::Summary,
                PromptSource::Command,
            ] {
                assert_eq!(PromptEcho::new(sent).offer(&prompt(text, source, 0)), Echo::No);
            }
        }
    }
    for sent in ["", "  \n"] {
        check(sent, "", false);
        check(sent, "ok", false);
    }
}

#[test]
fn a_queued_prompt_is_an_echo_and_one_of_a_sub_agent_is_not() {
    let queued = prompt("do it", PromptSource::Queued, 0);
    assert_eq!(PromptEcho::new("do it").offer(&queued), Echo::Yes);
    let side = Record { sidechain: true, ..typed("do it") };
    assert_eq!(PromptEcho::new("do it").offer(&side), Echo::No);
}

#[test]
fn what_a_tool_or_the_model_says_is_no_echo() {
    let facts = vec![
        Fact::ToolResult {
            id: "t".into(),
            output: "do it".into(),
            is_error: false,
            facts: None,
            denied: None,
        },
        Fact::Enqueued { content: "do it".into() },
        Fact::CommandOutput { text: "do it".into() },
    ];
    let record = Record { facts, ..Record::default() };
    assert_eq!(PromptEcho::new("do it").offer(&record), Echo::No);
}

fn one() -> PromptEcho {
    PromptEcho::with_images("look at /p/a.png please", &["/p/a.png"])
}

fn two() -> PromptEcho {
    PromptEcho::with_images("compare /p/a.png with '/p/b c.png'", &["/p/a.png", "/p/b c.png"])
}

fn with_one() -> Record {
    prompt("look at [Image #1] please", PromptSource::Typed, 1)
}

fn with_two() -> Record {
    prompt("compare [Image #1] with [Image #2]", PromptSource::Typed, 2)
}

#[test]
fn images_none_in_the_prompt() {
    check("look at [Image #1] please", "look at [Image #1] please", true);
    let record = prompt("look", PromptSource::Typed, 1);
    assert_eq!(PromptEcho::new("look").offer(&record), Echo::No);
}

#[test]
fn images_one_is_certain_with_its_source() {
    let mut echo = one();
    assert_eq!(echo.offer(&with_one()), Echo::Waiting);
    assert_eq!(echo.offer(&Record::default()), Echo::Waiting);
    assert_eq!(echo.offer(&hidden("[Image: source: /p/a.png]")), Echo::Yes);
}

#[test]
fn images_several_in_one_record_or_in_many() {
    let both = "[Image: source: /p/a.png]\n[Image: source: /p/b c.png]";
    assert_eq!(last(two(), &[with_two(), hidden(both)]), Echo::Yes);
    let first = hidden("[Image: source: /p/a.png]");
    let second = hidden("[Image: source: /p/b c.png]");
    assert_eq!(last(two(), &[with_two(), first.clone()]), Echo::Waiting);
    assert_eq!(last(two(), &[with_two(), first, second]), Echo::Yes);
}

#[test]
fn images_same_words_with_another_image() {
    let other = hidden("[Image: source: /p/other.png]");
    assert_eq!(last(one(), &[with_one(), other.clone()]), Echo::No);
    // And nothing is left of it.
    let right = hidden("[Image: source: /p/a.png]");
    assert_eq!(last(one(), &[with_one(), other, right]), Echo::No);
}

#[test]
fn images_whose_source_is_never_told() {
    let answer = Fact::Notice { text: "on it".into() };
    let goes_on = Record { facts: vec![answer], ..Record::default() };
    let late = hidden("[Image: source: /p/a.png]");
    assert_eq!(last(one(), &[with_one(), goes_on.clone()]), Echo::No);
    assert_eq!(last(one(), &[with_one(), goes_on, late]), Echo::No);
}

#[test]
fn images_in_another_order() {
    let swapped = "[Image: source: /p/b c.png]\n[Image: source: /p/a.png]";
    assert_eq!(last(two(), &[with_two(), hidden(swapped)]), Echo::No);
}

#[test]
fn images_of_another_count() {
    for images in [0, 2] {
        let record = prompt("look at [Image #1] please", PromptSource::Typed, images);
        assert_eq!(one().offer(&record), Echo::No);
    }
    let three = "[Image: source: /p/a.png]\n[Image: source: /p/b c.png]\n[Image: source: /p/c.png]";
    assert_eq!(last(two(), &[with_two(), hidden(three)]), Echo::No);
}

#[test]
fn images_with_other_words() {
    let record = prompt("do not look at [Image #1] please", PromptSource::Typed, 1);
    assert_eq!(one().offer(&record), Echo::No);
}

#[test]
fn images_and_nothing_else() {
    let echo = PromptEcho::with_images("/p/a\\ b.png", &["/p/a b.png"]);
    let record = prompt("[Image #1]", PromptSource::Typed, 1);
    assert_eq!(last(echo, &[record, hidden("[Image: source: /p/a b.png]")]), Echo::Yes);
}

#[test]
fn images_the_same_words_again_begin_anew() {
    let source = hidden("[Image: source: /p/a.png]");
    assert_eq!(last(one(), &[with_one(), with_one(), source]), Echo::Yes);
}
