//! As much of Markdown as the generated pages of docs/ have: headings, paragraphs, lists, fenced code and tables.

use super::roff::Page;

/// Adds a document; its title is the page's own, and a paragraph on how it is generated is nobody's concern there.
pub fn add(page: &mut Page, text: &str) {
    let mut lines = text.lines().peekable();
    page.section("DESCRIPTION");
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("### ") {
            page.subsection(heading);
        } else if let Some(heading) = line.strip_prefix("## ") {
            page.section(&heading.to_uppercase());
        } else if line.starts_with("# ") || line.trim().is_empty() {
        } else if line.starts_with("```") {
            let code: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            page.example(&code.join("\n"));
        } else if line.starts_with('|') {
            // the heading of the columns and the line below it
            let _ = lines.next_if(|line| line.starts_with("|--") || line.starts_with("| --"));
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                table_row(page, row);
            }
        } else {
            let mut block = vec![line];
            let begins = |line: &&str| ["|", "#", "```", "- "].iter().any(|sign| line.starts_with(sign));
            let goes_on = |line: &&str| !line.trim().is_empty() && !begins(line);
            while let Some(line) = lines.next_if(goes_on) {
                block.push(line);
            }
            let block = block.join("\n");
            match block.strip_prefix("- ") {
                Some(item) => page.bullet(item),
                None if block.starts_with("Generated from") => {}
                None => page.paragraph(&block),
            }
        }
    }
}

/// The first cell is the term, the others are what is said of it.
fn table_row(page: &mut Page, row: &str) {
    let inner = row.trim().trim_start_matches('|').trim_end_matches('|').replace("\\|", "\u{1}");
    let cells: Vec<String> = inner.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect();
    let Some((term, rest)) = cells.split_first() else { return };
    page.raw_term(&super::roff::inline(term));
    if let Some((last, between)) = rest.split_last() {
        for cell in between.iter().filter(|cell| !cell.is_empty()) {
            page.lines(cell);
            page.line_break();
        }
        page.lines(last);
    }
}
