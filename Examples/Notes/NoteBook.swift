import Larder
import LarderCrypto
import LarderIndexes

/// The notes and folders of a store of bytes.
///
/// Notes are under `v/`, their indexes under `i/`, and folders under `folder/`.
struct NoteBook<Base: ObservableStore>: Sendable where Base.Value == [UInt8] {
  typealias Notes = IndexedStore<Base, Note>

  let notes: Notes
  let folders: TypedView<Base, Folder>

  /// Opens the notes, and completes indexes that a newer version of the app has added.
  ///
  /// - Parameters:
  ///   - store: The store of the notes.
  ///   - keys: The keys that encrypt the notes, or `nil` for plain notes. Tags, folders and times are in the keys of the
  ///     indexes, which are always plain.
  init(_ store: Base, keys: KeyRing? = nil) async throws {
    let plain = try JSONCodec<Note>().versioned(2, ValueMigration(from: 1, .json(NoteV1.self)) { Note($0) })
    let codec: any Codec<Note> = if let keys { plain.encrypted(with: keys, purpose: "notes") } else { plain }
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

  /// Shows the newest notes now, and again after each change, also by another program.
  ///
  /// The method returns when the task is cancelled or the store is closed.
  ///
  /// - Parameters:
  ///   - size: The maximum number of notes.
  ///   - show: A closure that shows the notes.
  func watch(size: Int, _ show: ([StoreEntry<Note>]) async throws -> Void) async throws {
    // The observation begins before the first page is read. Otherwise, it would miss a change between the two.
    let changes = notes.changes()
    try await show(page(size: size).entries)
    for await _ in changes { try await show(page(size: size).entries) }
  }

  /// Moves notes to a folder, all or none of them.
  ///
  /// - Throws: ``NoteError`` if the folder or a note does not exist.
  func move(_ keys: [StoreKey], to folder: String) async throws {
    try await notes.base.transaction { tx in
      if folder != Folder.inbox, try await !tx.contains(StoreKey(folder), in: folders) {
        throw NoteError.missingFolder(folder)
      }
      for (key, note) in zip(keys, try await tx.values(forKeys: keys, in: notes)) {
        guard var note else { throw NoteError.missingNote(key) }
        note.folder = folder
        try await tx.setValue(note, forKey: key, in: notes)
      }
      return .commit(())
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
