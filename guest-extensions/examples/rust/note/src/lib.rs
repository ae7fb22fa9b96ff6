//! A command that asks: `/note buy milk` keeps a note, `/note` asks what to keep. With it a tool, so that a model can look
//! them up. Dialogs, the private store, a message to the model, and a tool beside an extension, in one small component.

use atoll_plugin::{
    Call, Content, Error, EventId, Extension, NoArguments, export_extension,
    extension::StartReason,
    session::{self, CustomMessage},
    store, tools,
    types::{Delivery, Subscription},
    ui,
};

/// Where the notes are in the store: one a line.
const NOTES: &str = "notes";

struct Note;

impl Extension for Note {
    async fn start(_: StartReason) -> Result<(Self, Subscription), Error> {
        Ok((Self, Subscription::new().command("note", "Keeps a note, and tells the model of it if you like.")))
    }

    async fn command(&self, _: EventId, _: &str, arguments: &str) -> Result<(), Error> {
        let Some(text) = asked_for(arguments).await? else {
            ui::notify("Nothing was noted.", ui::Tone::Info);
            return Ok(());
        };
        // One note is one line, whatever was typed.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let choices = ["only keep it", "the model reads it with my next prompt"].map(str::to_owned).to_vec();
        // Without a person, and if they decline, the answer is none: then the model is told nothing.
        let choice = ui::select(format!("Who reads \"{text}\"?"), choices, None).await?;
        keep(&text).await?;
        if choice == Some(1) {
            let message = CustomMessage {
                custom_type: "note".to_owned(),
                content: vec![Content::Text(format!("A note of the user's: {text}"))],
                display: true,
                details: None,
            };
            session::send_custom(message, Delivery::NextTurn, false).await?;
        }
        ui::notify(&format!("Noted: {text}"), ui::Tone::Info);
        Ok(())
    }
}

export_extension!(Note);

/// What stands after the command, else what the person says.
async fn asked_for(arguments: &str) -> Result<Option<String>, Error> {
    let text = match arguments.trim() {
        "" => ui::input("What is to be noted?".to_owned(), "buy milk".to_owned(), None).await?,
        given => Some(given.to_owned()),
    };
    Ok(text.filter(|text| !text.trim().is_empty()))
}

async fn kept() -> Result<String, Error> {
    Ok(String::from_utf8_lossy(&store::get(NOTES.to_owned()).await?.unwrap_or_default()).into_owned())
}

async fn keep(text: &str) -> Result<(), Error> {
    let notes = kept().await? + text + "\n";
    store::set(NOTES.to_owned(), notes.into_bytes()).await
}

async fn notes(_: NoArguments, _: Call) -> Result<String, Error> {
    let notes = kept().await?;
    Ok(if notes.is_empty() { "There are no notes.".to_owned() } else { notes })
}

tools! {
    /// Gives the notes that the user keeps, one a line.
    notes: |tool| tool.label("Notes").prompt_snippet("Reads the user's notes");
}
