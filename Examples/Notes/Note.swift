import Foundation
import LarderIndexes

/// A note, as the current version of the app stores it.
struct Note: Codable, Sendable, Equatable {
  var title: String
  var folder: String
  var tags: [String]
  /// The time of creation, in milliseconds since 1970.
  let created: Int64
}

/// A folder, a second type in the same store.
struct Folder: Codable, Sendable, Equatable {
  /// The name of the folder that always exists.
  static let inbox = "inbox"

  var color: String
}

/// A note as version 1 of the app stored it: without folders, with the date as text and the tags as one text.
struct NoteV1: Codable, Sendable {
  var title: String
  var tags: String
  var created: Date
}

extension Note {
  /// Converts a note of version 1.
  init(_ old: NoteV1) {
    title = old.title
    folder = Folder.inbox
    tags = old.tags.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    created = Int64(old.created.timeIntervalSince1970 * 1000)
  }

  /// All notes by their time.
  static let byTime = StoreIndex<Note>("time") { _, note in [[note.created]] }

  /// The notes with each tag, by their time.
  static let byTag = StoreIndex<Note>("tag") { _, note in note.tags.map { [$0, note.created] } }

  /// The notes in each folder, by their time.
  static let byFolder = StoreIndex<Note>("folder") { _, note in [[note.folder, note.created]] }
}
