//! Response files.

use std::path::Path;

use crate::error::Error;

/// Replaces `@FILE` arguments by what the files hold, as gcc does: words separated by white space, with quotes and
/// backslashes; a file that cannot be read leaves the word alone.
pub(super) fn expand_response_files(args: Vec<String>) -> Result<Vec<String>, Error> {
    let mut out = Vec::new();
    let mut stack: Vec<String> = args.into_iter().rev().collect();
    let mut budget = 2000;
    while let Some(arg) = stack.pop() {
        if let Some(name) = arg.strip_prefix('@')
            && Path::new(name).is_file()
        {
            budget -= 1;
            if budget == 0 {
                return Err(Error::ResponseFileLoop(name.to_owned()));
            }
            let text = std::fs::read_to_string(name).map_err(|e| Error::read(name, e))?;
            stack.extend(split_words(&text).into_iter().rev());
            continue;
        }
        out.push(arg);
    }
    Ok(out)
}

fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', _) => {
                if let Some(next) = chars.next() {
                    word.get_or_insert_default().push(next);
                }
            }
            (c, Some(q)) if c == q => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_file_words() {
        assert_eq!(
            split_words("a 'b c' \"d\\\"e\" f\\ g\n\n''"),
            ["a", "b c", "d\"e", "f g", ""]
        );
    }
}
