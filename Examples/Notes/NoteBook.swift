import Larder
import LarderIndexes

/// The notes and folders of a store of bytes.
///
/// Notes are under `v/`, their indexes under `i/`, and folders under `folder/`.
struct NoteBook<Base: ObservableStore>: Sendable where Base.Value == [UInt8] {
  typealias Notes = IndexedStore<Base, Note>

  let notes: Notes
  let folders: TypedView<Base, Folder>

  /// Opens the notes, and completes indexes that a newer version of the app has added.
  init(_ store: Base) async throws {
    // Version 0 are the values of the first release, which had no versions.
    let codec = try JSONCodec<Note>().versioned(2, Migration(from: 1, .json(NoteV1.self)) { Note($0) })
    notes = try await store.indexed(by: [Note.byTime, Note.byTag, Note.byFolder], codec: codec)
    folders = store.typed(Folder.self, prefix: "folder/", codec: .json())
    if store.information.access == .readWrite { try await notes.rebuildIndexes() }
  }

  /// Adds a note to the inbox.
  ///
  /// - Returns: The key of the note, which is its time, or the next free number if another note has the same time.
  func add(_ title: String, tags: [String], at time: Int64) async throws -> String {
    let note = Note(title: title, folder: Folder.inbox, tags: tags, created: time)
    var number = time
    while true {
      let key = String(number)
      let isNew = try await notes.update(StoreKey(key)) { slot in
        guard slot == nil else { return false }
        slot = note
        return true
      }
      if isNew { return key }
      number += 1
    }
  }

  /// Returns a page of the notes, newest first.
  ///
  /// - Parameters:
  ///   - tag: The tag of the notes, or `nil` for those with any tag.
  ///   - folder: The folder of the notes, or `nil` for those in any folder. A tag takes precedence.
  ///   - cursor: The cursor of the page before, or `nil` for the first page.
  func page(
    tag: String? = nil, folder: String? = nil, size: Int = 20, after cursor: PageCursor? = nil
  ) async throws -> StorePage<Note> {
    let (index, range): (StoreIndex<Note>, KeyRange) =
      if let tag {
        (Note.byTag, .prefix(components: tag))
      } else if let folder {
        (Note.byFolder, .prefix(components: folder))
      } else {
        (Note.byTime, .all)
      }
    return try await notes.page(where: index, in: range, size: size, order: .descending, after: cursor)
  }

  /// Moves notes to a folder, all or none of them.
  ///
  /// - Throws: ``NoteError`` if the folder or a note does not exist.
  func move(_ keys: [StoreKey], to folder: String) async throws {
    if folder != Folder.inbox, try await !folders.contains(StoreKey(folder)) { throw NoteError.missingFolder(folder) }
    try await notes.update(keys) { slots in
      for index in slots.indices {
        guard slots[index] != nil else { throw NoteError.missingNote(keys[index]) }
        slots[index]?.folder = folder
      }
    }
  }
}

/// An error of the app.
enum NoteError: Error, Equatable, CustomStringConvertible {
  case missingFolder(String)
  case missingNote(StoreKey)

  var description: String {
    switch self {
    case .missingFolder(let name): "there is no folder '\(name)'; create it with `notes folder`"
    case .missingNote(let key): "there is no note \(key)"
    }
  }
}
