//! What is in a message, from the parameters of the method that sends it.

use serde_json::{Value, json};

use crate::http::contents::{Contents, File, FileKind};
use crate::http::methods::Content;
use crate::http::objects::Fields;
use crate::http::params::Params;

/// The fields that a message has by its content; of a text all but the text. `number` tells contents apart that have
/// ids of their own.
pub(super) fn content(content: Content, params: &Params, number: i64, contents: &mut Contents) -> Fields {
    let mut fields = Fields::new();
    match content {
        Content::Text => copy(&mut fields, params, &["entities", "link_preview_options"]),
        Content::Photo => {
            let photo = photo(params, contents);
            fields.insert("photo".into(), photo);
        }
        Content::LivePhoto => {
            let photo = photo(params, contents);
            let live = file(FileKind::Video, "live_photo", params, contents);
            fields.insert("live_photo".into(), live);
            fields.insert("photo".into(), photo);
        }
        Content::Audio => {
            drop(fields.insert("audio".into(), file(FileKind::Audio, "audio", params, contents)))
        }
        Content::Document => {
            fields.insert("document".into(), file(FileKind::Document, "document", params, contents));
        }
        Content::Video => {
            drop(fields.insert("video".into(), file(FileKind::Video, "video", params, contents)))
        }
        Content::Animation => {
            let animation = file(FileKind::Animation, "animation", params, contents);
            // Both, for clients from before there were animations (core.telegram.org/bots/api#message).
            let document = ["file_id", "file_unique_id", "file_name", "mime_type", "file_size"];
            let document = document.iter().filter_map(|name| Some((*name, animation.get(name)?.clone())));
            fields
                .insert("document".into(), document.map(|(name, value)| (name.to_owned(), value)).collect());
            fields.insert("animation".into(), animation);
        }
        Content::Voice => {
            drop(fields.insert("voice".into(), file(FileKind::Voice, "voice", params, contents)))
        }
        Content::VideoNote => {
            fields.insert("video_note".into(), file(FileKind::VideoNote, "video_note", params, contents));
        }
        Content::Sticker => {
            fields.insert("sticker".into(), file(FileKind::Sticker, "sticker", params, contents));
        }
        Content::PaidMedia => {
            let media: Vec<Value> = super::album(params).iter().map(|item| paid(item, contents)).collect();
            let stars = params.integer("star_count").unwrap_or(1);
            fields.insert("paid_media".into(), json!({ "star_count": stars, "paid_media": media }));
        }
        Content::Location => drop(fields.insert("location".into(), location(params))),
        Content::Venue => {
            let location = location(params);
            let mut venue = Fields::from_iter([("location".to_owned(), location.clone())]);
            let names = ["title", "address", "foursquare_id", "foursquare_type", "google_place_id"];
            copy_texts(&mut venue, params, &names);
            fields.insert("venue".into(), venue.into());
            fields.insert("location".into(), location);
        }
        Content::Contact => {
            let mut contact = Fields::new();
            copy_texts(&mut contact, params, &["phone_number", "first_name", "last_name", "vcard"]);
            fields.insert("contact".into(), contact.into());
        }
        Content::Poll => drop(fields.insert("poll".into(), poll(params, number))),
        Content::Dice => drop(fields.insert("dice".into(), dice(params, number))),
        Content::Game => {
            let title = params.text("game_short_name").unwrap_or_default();
            let photo = sizes(&Named::Elsewhere("AgACAgIAAxkBAAIgame".to_owned()));
            fields.insert("game".into(), json!({ "title": title, "description": "A game", "photo": photo }));
        }
        Content::Invoice => drop(fields.insert("invoice".into(), invoice(params))),
        Content::Checklist => {
            let checklist = params.json("checklist").unwrap_or_default();
            let mut kept = Fields::from_iter([
                ("title".to_owned(), checklist.get("title").cloned().unwrap_or_else(|| "".into())),
                ("tasks".to_owned(), checklist.get("tasks").cloned().unwrap_or_else(|| json!([]))),
            ]);
            for name in ["others_can_add_tasks", "others_can_mark_tasks_as_done"] {
                if checklist.get(name) == Some(&Value::Bool(true)) {
                    kept.insert(name.to_owned(), true.into());
                }
            }
            fields.insert("checklist".into(), kept.into());
        }
        Content::RichMessage => {
            let rich = params.json("rich_message").unwrap_or_default();
            let text =
                ["html", "markdown"].iter().find_map(|name| rich.get(name)?.as_str()).unwrap_or_default();
            let paragraph = json!({ "type": "paragraph", "text": text });
            fields.insert("rich_message".into(), json!({ "blocks": [paragraph] }));
        }
    }
    caption(&mut fields, params);
    fields
}

/// The fields of a caption.
pub(super) fn caption(fields: &mut Fields, params: &Params) {
    if params.text("caption").is_some_and(|caption| !caption.is_empty()) {
        copy_texts(fields, params, &["caption"]);
        copy(fields, params, &["caption_entities"]);
    }
    if params.is_true("show_caption_above_media") {
        fields.insert("show_caption_above_media".into(), true.into());
    }
    if params.is_true("has_spoiler") {
        fields.insert("has_media_spoiler".into(), true.into());
    }
}

/// Copies parameters that are structures, numbers or truth values.
pub(super) fn copy(fields: &mut Fields, params: &Params, names: &[&str]) {
    for name in names {
        if let Some(value) = params.json(name) {
            fields.insert((*name).to_owned(), value.into_owned());
        }
    }
}

/// Copies parameters that are texts.
pub(super) fn copy_texts(fields: &mut Fields, params: &Params, names: &[&str]) {
    for name in names {
        if let Some(text) = params.text(name) {
            fields.insert((*name).to_owned(), text.into());
        }
    }
}

/// The file that a parameter names.
enum Named {
    /// One that is kept here.
    Here(Box<File>),
    /// One of which only the id is known: from another server, or forgotten.
    Elsewhere(String),
}

impl Named {
    fn find(kind: FileKind, field: &str, params: &Params, contents: &mut Contents) -> Self {
        if let Some(upload) = params.file(field) {
            return Self::Here(contents.upload(File::uploaded(kind, upload)).clone().into());
        }
        let name = params.text(field).unwrap_or_default();
        if name.contains("://") {
            return Self::Here(contents.upload(File::at_url(kind, &name)).clone().into());
        }
        match contents.file(&name) {
            Some(file) => Self::Here(file.clone().into()),
            None => Self::Elsewhere(name.into_owned()),
        }
    }

    /// The fields that a file has in every object.
    fn fields(&self, size: usize) -> Fields {
        match self {
            Self::Here(file) => Fields::from_iter([
                ("file_id".to_owned(), file.id(size).into()),
                ("file_unique_id".to_owned(), file.unique_id(size).into()),
                ("file_size".to_owned(), file.size().into()),
            ]),
            Self::Elsewhere(id) => {
                let end: String = id.chars().skip(id.chars().count().saturating_sub(15)).collect();
                Fields::from_iter([
                    ("file_id".to_owned(), id.as_str().into()),
                    ("file_unique_id".to_owned(), format!("AQAD{end}").into()),
                ])
            }
        }
    }
}

fn photo(params: &Params, contents: &mut Contents) -> Value {
    sizes(&Named::find(FileKind::Photo, "photo", params, contents))
}

/// Nobody looks into photos: all are of one size, and come in three.
fn sizes(named: &Named) -> Value {
    const SIZES: [(u16, u16); 3] = [(90, 67), (320, 240), (800, 600)];
    let sizes = SIZES.iter().enumerate().map(|(size, (width, height))| {
        let mut fields = named.fields(size);
        fields.insert("width".into(), (*width).into());
        fields.insert("height".into(), (*height).into());
        Value::Object(fields)
    });
    sizes.collect()
}

/// Any other file, with what its type needs; nobody looks into it, so its client's word counts.
fn file(kind: FileKind, field: &str, params: &Params, contents: &mut Contents) -> Value {
    let named = Named::find(kind, field, params, contents);
    let mut fields = named.fields(0);
    let mut number = |name: &str, otherwise: i64| {
        let value = params.integer(name).filter(|value| *value > 0).unwrap_or(otherwise);
        fields.insert(name.to_owned(), value.into());
    };
    match kind {
        FileKind::Video | FileKind::Animation => {
            number("width", 640);
            number("height", 360);
            number("duration", 1);
        }
        FileKind::Audio | FileKind::Voice => number("duration", 1),
        FileKind::VideoNote => {
            number("length", 240);
            number("duration", 1);
        }
        FileKind::Sticker => {
            number("width", 512);
            number("height", 512);
            fields.insert("type".into(), "regular".into());
            fields.insert("is_animated".into(), false.into());
            fields.insert("is_video".into(), false.into());
            copy_texts(&mut fields, params, &["emoji"]);
        }
        FileKind::Photo | FileKind::Document => {}
    }
    if kind == FileKind::Audio {
        copy_texts(&mut fields, params, &["performer", "title"]);
    }
    if let Named::Here(file) = named
        && !matches!(kind, FileKind::VideoNote | FileKind::Sticker)
    {
        if let Some(name) = file.name.filter(|_| kind != FileKind::Voice) {
            fields.insert("file_name".into(), name.into());
        }
        if let Some(content_type) = file.content_type {
            fields.insert("mime_type".into(), content_type.into());
        }
    }
    fields.into()
}

fn paid(item: &Params, contents: &mut Contents) -> Value {
    match item.text("type").as_deref() {
        Some("video") => {
            json!({ "type": "video", "video": file(FileKind::Video, "video", item, contents) })
        }
        _ => json!({ "type": "photo", "photo": photo(item, contents) }),
    }
}

pub(super) fn location(params: &Params) -> Value {
    let mut location = Fields::new();
    for name in ["latitude", "longitude"] {
        let degrees = params.json(name).filter(|value| value.is_number());
        location.insert(name.to_owned(), degrees.map_or_else(|| 0.into(), |value| value.into_owned()));
    }
    let rest = ["horizontal_accuracy", "live_period", "heading", "proximity_alert_radius"];
    copy(&mut location, params, &rest);
    location.into()
}

fn poll(params: &Params, number: i64) -> Value {
    let options = params.json("options").unwrap_or_default();
    let options = options.as_array().into_iter().flatten().enumerate().map(|(index, option)| {
        // A text until Bot API 7.3, an object since.
        let text = option.as_str().or_else(|| option.get("text")?.as_str()).unwrap_or_default();
        json!({ "persistent_id": index.to_string(), "text": text, "voter_count": 0 })
    });
    let mut poll = Fields::from_iter([
        ("id".to_owned(), format!("5{number:018}").into()),
        ("question".to_owned(), params.text("question").unwrap_or_default().into()),
        ("options".to_owned(), options.collect()),
        ("total_voter_count".to_owned(), 0.into()),
        ("is_closed".to_owned(), params.is_true("is_closed").into()),
        (
            "is_anonymous".to_owned(),
            (params.get("is_anonymous").is_none() || params.is_true("is_anonymous")).into(),
        ),
        (
            "type".to_owned(),
            if params.text("type").as_deref() == Some("quiz") { "quiz" } else { "regular" }.into(),
        ),
        ("allows_multiple_answers".to_owned(), params.is_true("allows_multiple_answers").into()),
        ("allows_revoting".to_owned(), params.is_true("allows_revoting").into()),
        ("members_only".to_owned(), params.is_true("members_only").into()),
    ]);
    copy_texts(&mut poll, params, &["explanation"]);
    let rest =
        ["correct_option_id", "correct_option_ids", "explanation_entities", "open_period", "close_date"];
    copy(&mut poll, params, &rest);
    poll.into()
}

/// The number decides what is thrown (sides: core.telegram.org/bots/api#dice).
fn dice(params: &Params, number: i64) -> Value {
    let emoji = params.text("emoji").filter(|emoji| !emoji.is_empty()).unwrap_or_else(|| "🎲".into());
    let sides = match emoji.as_ref() {
        "🏀" | "⚽" => 5,
        "🎰" => 64,
        _ => 6,
    };
    json!({ "emoji": emoji, "value": 1 + number.rem_euclid(sides) })
}

fn invoice(params: &Params) -> Value {
    let prices = params.json("prices").unwrap_or_default();
    let amounts = prices.as_array().into_iter().flatten().filter_map(|price| price.get("amount")?.as_i64());
    let mut invoice = Fields::from_iter([
        ("start_parameter".to_owned(), "".into()),
        ("total_amount".to_owned(), amounts.fold(0, i64::saturating_add).into()),
    ]);
    copy_texts(&mut invoice, params, &["title", "description", "currency", "start_parameter"]);
    invoice.into()
}
