import Larder

/// Puts entries into a store, batch by batch, and keeps count.
struct Importer<Store: DataStore> where Store.Value == JSONText {
  private let store: Store
  private let parser: EntryParser
  private let batchSize: Int
  private var batch = ChangeBatch<JSONText>()

  /// How many entries were committed.
  ///
  /// An entry that overwrites another of the same import counts, too.
  private(set) var committed = 0

  /// How many entries were taken, committed or not.
  var taken: Int { committed + batch.count }

  /// Makes an importer.
  ///
  /// - Parameters:
  ///   - store: Where the entries go.
  ///   - parser: Makes entries of lines.
  ///   - batchSize: How many entries make a commit, at least 1.
  init(into store: Store, parser: EntryParser, batchSize: Int) {
    self.store = store
    self.parser = parser
    self.batchSize = batchSize
  }

  /// Takes a line, and commits where it completes a batch.
  ///
  /// An empty line is skipped.
  ///
  /// - Returns: Whether there was a commit.
  /// - Throws: ``BadLine``, with nothing taken; what committing throws.
  mutating func take(_ line: LineSplitter.Line) async throws -> Bool {
    guard let entry = try parser.entry(of: line) else { return false }
    if let maximum = store.information.maximumValueSize, entry.value.bytes.count > maximum {
      throw BadLine("its value has \(entry.value.bytes.count) bytes, the most that this store takes is \(maximum)")
    }
    batch.setValue(entry.value, forKey: entry.key)
    return batch.count < batchSize ? false : try await commit()
  }

  /// Commits what is left.
  ///
  /// - Returns: Whether there was a commit.
  /// - Throws: What committing throws.
  mutating func finish() async throws -> Bool {
    batch.isEmpty ? false : try await commit()
  }

  private mutating func commit() async throws -> Bool {
    try await store.apply(batch)
    committed += batch.count
    batch = ChangeBatch()
    return true
  }
}
