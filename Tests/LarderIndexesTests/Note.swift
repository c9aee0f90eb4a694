#if LMDB
import Larder
import LarderIndexes
import LarderTesting
import Testing

/// A value with properties to index.
struct Note: Codable, Sendable, Equatable {
  var title: String
  var tags: [String] = []
  var created = 0

  static let tagKeys: @Sendable (StoreKey, Note) -> [[any KeyComponentConvertible]] = { _, note in
    note.tags.map { [$0, note.created] }
  }
  static let byTag = StoreIndex<Note>("tag", keys: tagKeys)
  static let byTitle = StoreIndex<Note>("title", isUnique: true) { _, note in [[note.title]] }

  /// A random note, whose title is unlikely to be unique.
  static func random(using generator: inout SeededGenerator) -> Note {
    Note(
      title: "title \(Int.random(in: 0..<40, using: &generator))",
      tags: (0..<Int.random(in: 0...3, using: &generator)).map { _ in
        "tag\(Int.random(in: 0..<4, using: &generator))"
      },
      created: .random(in: 0..<50, using: &generator))
  }
}

typealias Notes<Base: DataStore> = IndexedStore<Base, Note> where Base.Value == [UInt8]

/// Opens a store of notes with both indexes.
func openNotes<Base: DataStore>(
  _ base: Base, by indexes: [StoreIndex<Note>] = [Note.byTag, Note.byTitle]
) async throws -> IndexedStore<Base, Note> where Base.Value == [UInt8] {
  try await base.indexed(by: indexes, codec: .json(Note.self))
}

extension IndexedStore where Value == Note {
  /// Returns the keys of the notes with a tag, newest first.
  func keys(tagged tag: String, limit: Int = .max) async throws -> [StoreKey] {
    try await entries(where: Note.byTag, in: .prefix(components: tag), limit: limit, order: .descending).map(\.key)
  }

  /// Returns the key of the note with a title.
  func key(titled title: String) async throws -> StoreKey? {
    try await entries(where: Note.byTitle, in: .prefix(components: title), limit: 2).map(\.key).first
  }

  /// Expects that every index has exactly the entries that the values give, in their order.
  func expectConsistent(_ comment: String = "", sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let report = try await verifyIndexes()
    #expect(report.findings == [], "\(comment)", sourceLocation: sourceLocation)
    let all = try await entries(in: .all, limit: .max)
    // Computed from the values alone, without the code of the store.
    let tagged = Set(all.flatMap { entry in entry.value.tags.map { Tagged(tag: $0, entry: entry) } }).sorted()
    let found = try await entries(where: Note.byTag, limit: .max)
    #expect(found.map(\.key) == tagged.map(\.key), "\(comment)", sourceLocation: sourceLocation)
    guard indexes.contains(where: { $0.name == Note.byTitle.name }) else { return }
    let titles = try await entries(where: Note.byTitle, limit: .max).map(\.value.title)
    #expect(titles == all.map(\.value.title).sorted(), "\(comment)", sourceLocation: sourceLocation)
  }
}

/// An index key of a note, in the order of the index.
private struct Tagged: Hashable, Comparable {
  let tag: String
  let created: Int
  let key: StoreKey

  init(tag: String, entry: StoreEntry<Note>) {
    (self.tag, created, key) = (tag, entry.value.created, entry.key)
  }

  static func < (left: Tagged, right: Tagged) -> Bool {
    (left.tag, left.created, left.key) < (right.tag, right.created, right.key)
  }
}
#endif
