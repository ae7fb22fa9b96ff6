//! The tool `count_words`: counts the words of a text file. The host makes a fresh instance for each call, so nothing is kept
//! from one to the next.

use atoll_plugin::{Call, Error, Json, files, schemars, tools};

/// What a model has to say. Comments of fields are read by the model; a field that is an `Option` may be left out.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The file.
    path: String,
}

/// What a script gets. The model reads the same, as JSON.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Words {
    words: usize,
}

async fn count_words(arguments: Arguments, _call: Call) -> Result<Json<Words>, Error> {
    // Files are the host's: what `plugin.toml` asks for and the user has granted, and nothing else. An error is what the
    // model reads, so `?` is all it takes.
    let bytes = files::read(arguments.path, None).await?;
    Ok(Json(Words { words: count(&String::from_utf8_lossy(&bytes)) }))
}

tools! {
    /// Counts the words of a text file.
    count_words: |tool| tool.prompt_snippet("Counts words");
}

fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

// What calls no import is tested with plain `cargo test`.
#[cfg(test)]
mod tests {
    #[test]
    fn words_are_what_spaces_divide() {
        assert_eq!(super::count("one  two\nthree"), 3);
    }
}
