//! The files of a bot.

use std::collections::VecDeque;

use bytes::Bytes;

use super::Capacity;
use crate::http::params::Upload;
use crate::http::peers::Bot;

/// Files by number. An id and a path name the number, so there is nothing to look up.
#[derive(Debug, Clone)]
pub(super) struct Files {
    bot: i64,
    /// The number of the first that is kept.
    first: u64,
    files: VecDeque<File>,
    bytes: usize,
    capacity: Capacity,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// What it was sent as.
    pub kind: FileKind,
    /// What is in it; nothing, if it was named by a URL, which nobody fetches.
    pub bytes: Bytes,
    /// What its client calls it.
    pub name: Option<String>,
    /// Its media type, as its client has it.
    pub content_type: Option<String>,
    bot: i64,
    number: u64,
}

/// What a file was sent as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the API's own names")]
pub enum FileKind {
    Photo,
    Document,
    Video,
    Animation,
    Audio,
    Voice,
    VideoNote,
    Sticker,
}

impl Files {
    pub(super) fn new(bot: &Bot, capacity: Capacity) -> Self {
        Self { bot: bot.id, first: 0, files: VecDeque::new(), bytes: 0, capacity }
    }

    pub(super) fn add(&mut self, mut file: File) -> &File {
        file.bot = self.bot;
        file.number = self.first + self.files.len() as u64;
        self.bytes += file.bytes.len();
        self.files.push_back(file);
        // The last one stays, however large: its client is about to be told its id.
        while self.files.len() > 1
            && (self.files.len() > self.capacity.entries || self.bytes > self.capacity.file_bytes)
        {
            let oldest = self.files.pop_front().expect("there is more than one");
            self.bytes -= oldest.bytes.len();
            self.first += 1;
        }
        self.files.back().expect("one was just added")
    }

    /// Ids are `PREFIX-BOT-NUMBER-SIZE`.
    pub(super) fn by_id(&self, id: &str) -> Option<&File> {
        let mut parts = id.split('-').skip(1);
        let bot: i64 = parts.next()?.parse().ok()?;
        let file = self.by_number(parts.next()?)?;
        (bot == self.bot && id.starts_with(file.kind.prefix())).then_some(file)
    }

    /// Paths are `DIRECTORY/file_NUMBER.EXTENSION`.
    pub(super) fn by_path(&self, path: &str) -> Option<&File> {
        let number = path.rsplit_once("file_")?.1.split('.').next()?;
        self.by_number(number).filter(|file| file.path() == path)
    }

    fn by_number(&self, number: &str) -> Option<&File> {
        let index = number.parse::<u64>().ok()?.checked_sub(self.first)?;
        self.files.get(usize::try_from(index).ok()?)
    }
}

impl File {
    /// A file as a client uploaded it.
    pub fn uploaded(kind: FileKind, upload: &Upload) -> Self {
        Self {
            kind,
            bytes: upload.bytes.clone(),
            name: upload.file_name.clone(),
            content_type: upload.content_type.clone(),
            bot: 0,
            number: 0,
        }
    }

    /// A file at a URL.
    pub fn at_url(kind: FileKind, url: &str) -> Self {
        let name = url.split(['?', '#']).next().and_then(|path| path.rsplit('/').next());
        let upload = Upload { file_name: name.map(str::to_owned), ..Upload::default() };
        Self::uploaded(kind, &upload)
    }

    /// Its id, in the size `size`: photos have several, other files only size 0.
    pub fn id(&self, size: usize) -> String {
        format!("{}-{}-{}-{size}", self.kind.prefix(), self.bot, self.number)
    }

    /// The id by which other bots would know it too.
    pub fn unique_id(&self, size: usize) -> String {
        format!("AQAD-{}-{}-{size}", self.bot, self.number)
    }

    /// How long it is, in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Where to download it.
    pub fn path(&self) -> String {
        let extension =
            self.name.as_deref().and_then(|name| name.rsplit_once('.')).map_or("", |(_, end)| end);
        let is_plain =
            (1..=8).contains(&extension.len()) && extension.bytes().all(|b| b.is_ascii_alphanumeric());
        let extension = if is_plain { extension } else { self.kind.extension() };
        format!("{}/file_{}.{extension}", self.kind.directory(), self.number)
    }
}

impl FileKind {
    /// How ids begin, as seen in logs: they are base64 of numbers of which the first is the type.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Photo => "AgACAgIAAxkBAAI",
            Self::Document => "BQACAgIAAxkBAAI",
            Self::Video => "BAACAgIAAxkBAAI",
            Self::Animation => "CgACAgIAAxkBAAI",
            Self::Audio => "CQACAgIAAxkBAAI",
            Self::Voice => "AwACAgIAAxkBAAI",
            Self::VideoNote => "DQACAgIAAxkBAAI",
            Self::Sticker => "CAACAgIAAxkBAAI",
        }
    }

    const fn directory(self) -> &'static str {
        match self {
            Self::Photo => "photos",
            Self::Document => "documents",
            Self::Video => "videos",
            Self::Animation => "animations",
            Self::Audio => "music",
            Self::Voice => "voice",
            Self::VideoNote => "video_notes",
            Self::Sticker => "stickers",
        }
    }

    const fn extension(self) -> &'static str {
        match self {
            Self::Photo => "jpg",
            Self::Document => "bin",
            Self::Video | Self::Animation | Self::VideoNote => "mp4",
            Self::Audio => "mp3",
            Self::Voice => "oga",
            Self::Sticker => "webp",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &'static [u8]) -> File {
        let upload = Upload {
            file_name: Some("a.tar.gz".to_owned()),
            bytes: Bytes::from_static(bytes),
            ..Upload::default()
        };
        File::uploaded(FileKind::Document, &upload)
    }

    fn files(entries: usize, file_bytes: usize) -> Files {
        Files::new(&Bot::new(110), Capacity { entries, file_bytes })
    }

    #[test]
    fn a_file_is_found_by_its_ids_and_its_path() {
        let mut files = files(10, 100);
        let added = files.add(file(b"abc")).clone();
        assert_eq!(added.path(), "documents/file_0.gz");
        assert_eq!(files.by_id(&added.id(0)), Some(&added));
        assert_eq!(files.by_path(&added.path()), Some(&added));
        let no_ids = ["", "-", "--", "BQACAgIAAxkBAAI-111-0-0", "BQACAgIAAxkBAAI-110-1-0", "AgAC-110-0-0"];
        for id in no_ids {
            assert_eq!(files.by_id(id), None, "{id}");
        }
        for path in
            ["", "documents/file_0.exe", "../documents/file_0.gz", "documents/file_18446744073709551615.gz"]
        {
            assert_eq!(files.by_path(path), None, "{path}");
        }
    }

    #[test]
    fn the_oldest_files_go_when_bytes_or_entries_are_too_many() {
        let mut by_bytes = files(10, 5);
        let ids: Vec<String> = [&b"aaa"[..], b"bb", b"c"].map(|b| by_bytes.add(file(b)).id(0)).into();
        assert_eq!(by_bytes.by_id(&ids[0]), None);
        assert!(by_bytes.by_id(&ids[1]).is_some() && by_bytes.by_id(&ids[2]).is_some());
        assert_eq!(by_bytes.bytes, 3);
        let large = by_bytes.add(file(b"too large to be kept with others")).id(0);
        assert!(by_bytes.by_id(&large).is_some());
        assert_eq!(by_bytes.files.len(), 1);

        let mut by_entries = files(2, 100);
        let ids: Vec<String> = (0..3).map(|_| by_entries.add(file(b"")).id(0)).collect();
        assert_eq!(ids.iter().filter(|id| by_entries.by_id(id).is_some()).count(), 2);
    }

    #[test]
    fn an_odd_name_gives_no_odd_path() {
        for name in ["a.../../../etc", "noextension", "a.", "a.b/c", "a.ü"] {
            let upload = Upload { file_name: Some(name.to_owned()), ..Upload::default() };
            assert_eq!(File::uploaded(FileKind::Voice, &upload).path(), "voice/file_0.oga", "{name}");
        }
    }
}
