#if LMDB
import Foundation
import Larder
import LarderCBOR
import LarderIndexes
import LarderLMDB

/// A library of notes in notebooks, which lists the notes with a tag, newest first.
struct NoteLibrary {
  struct Note: Codable, Sendable, Equatable {
    var text: String
    var tags: [String]
    var created: Date
  }

  static let byTag = StoreIndex<Note>("tag") { _, note in note.tags.map { [$0, note.created] } }

  private let notes: IndexedStore<LMDBStore<[UInt8]>, Note>

  init(path: String) async throws {
    notes = try await LMDBStore(path: path, codec: .raw).indexed(by: [Self.byTag], codec: .cbor(Note.self))
    // Completes the index after it has changed. Otherwise, it returns immediately.
    try await notes.rebuildIndexes()
  }

  func add(_ note: Note, id: String, to notebook: String) async throws {
    try await notes.setValue(note, forKey: "\(notebook)/\(id)")
  }

  /// Returns the notes of a notebook, in the order of their IDs.
  func notes(in notebook: String) async throws -> [Note] {
    try await notes.entries(in: .prefix("\(notebook)/"), limit: 100).map(\.value)
  }

  /// Returns a page of the notes with a tag in all notebooks, newest first.
  func newest(tagged tag: String, after cursor: PageCursor? = nil) async throws -> StorePage<Note> {
    try await notes.page(
      where: Self.byTag, in: .prefix(components: tag), size: 20, order: .descending, after: cursor)
  }

  /// Moves a note to another notebook in one step, with its index entries.
  ///
  /// - Returns: A Boolean value that indicates whether the note exists and no other note is in its place.
  func move(_ id: String, from source: String, to target: String) async throws -> Bool {
    try await notes.update(["\(source)/\(id)", "\(target)/\(id)"]) { slots in
      guard slots[0] != nil, slots[1] == nil else { return false }
      slots.swapAt(0, 1)
      return true
    }
  }

  func close() async throws {
    try await notes.close()
  }
}
#endif
