#if LMDB
import CLMDB
import Foundation
import Larder

/// The changes of a batch as bytes, in the order in which LMDB writes them fastest.
///
/// Between the removals of ranges, changes to different keys may be made in any order. They are sorted: LMDB then writes
/// two to four times faster, into a file half the size.
struct EncodedChanges: Sendable {
  /// One change to one key.
  struct Item: Sendable {
    let key: StoreKey
    /// Where the value is among the bytes, or `nil` for a removal.
    let value: Place?
  }

  /// Where the bytes of a value are.
  struct Place: Sendable {
    let chunk: Int
    let range: Range<Int>
  }

  /// Changes that belong together.
  enum Step: Sendable {
    /// Changes to different keys, in the order of the keys.
    case items([Item])
    case removeAll(KeyRange)
  }

  /// A part of a batch whose values are encoded, in the order of the batch.
  private struct Part: Sendable {
    var items: [Item] = []
    /// The ranges that are removed, each with the number of items before it.
    var removals: [(place: Int, range: KeyRange)] = []
    var bytes: [UInt8] = []
  }

  private(set) var steps: [Step] = []
  private let chunks: [[UInt8]]

  /// How many changes are worth a task of their own.
  private static let concurrentCount = 4096

  /// How many threads encode at most; asked for once, because on Linux files are read for it.
  private static let threadCount = ProcessInfo.processInfo.activeProcessorCount

  /// Encodes a batch.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - check: Refuses a key that is none. Here, because to look at each change once more would copy each value.
  ///   - encode: Appends the bytes of a value.
  /// - Throws: What `check` and `encode` throw.
  init<Value>(
    _ changes: ChangeBatch<Value>, check: (_ key: StoreKey) throws -> Void,
    encode: (_ value: Value, _ key: StoreKey, _ bytes: inout [UInt8]) throws -> Void
  ) throws {
    self.init([try EncodedChanges.part(changes.changes[...], chunk: 0, check: check, encode: encode)])
  }

  /// Whether so many changes should be encoded on several threads.
  static func areWorthThreads(_ count: Int) -> Bool {
    threadCount > 1 && count >= 2 * concurrentCount
  }

  /// Encodes a large batch on several threads: encoding takes longer than writing.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - check: Refuses a key that is none.
  ///   - encode: Appends the bytes of a value.
  /// - Throws: What `check` and `encode` throw for the first change for which they do.
  init<Value: Sendable>(
    concurrently changes: ChangeBatch<Value>, check: @escaping @Sendable (_ key: StoreKey) throws -> Void,
    encode: @escaping @Sendable (_ value: Value, _ key: StoreKey, _ bytes: inout [UInt8]) throws -> Void
  ) async throws {
    let count = max(1, min(EncodedChanges.threadCount, changes.count / EncodedChanges.concurrentCount))
    let parts = await withTaskGroup(of: (Int, Result<Part, any Error>).self) { group in
      for chunk in 0..<count {
        let slice = changes.changes[changes.count * chunk / count..<changes.count * (chunk + 1) / count]
        group.addTask {
          (chunk, Result { try EncodedChanges.part(slice, chunk: chunk, check: check, encode: encode) })
        }
      }
      return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
    try self.init((0..<count).compactMap { try parts[$0]?.get() })
  }

  private static func part<Value>(
    _ changes: ArraySlice<Change<Value>>, chunk: Int, check: (_ key: StoreKey) throws -> Void,
    encode: (_ value: Value, _ key: StoreKey, _ bytes: inout [UInt8]) throws -> Void
  ) throws -> Part {
    var part = Part()
    part.items.reserveCapacity(changes.count)
    // Through a pointer, so that no change is copied, and its value not retained.
    try changes.withUnsafeBufferPointer { changes in
      for index in changes.indices {
        switch changes[index] {
        case .set(let key, let value):
          try check(key)
          let start = part.bytes.count
          try encode(value, key, &part.bytes)
          part.items.append(Item(key: key, value: Place(chunk: chunk, range: start..<part.bytes.count)))
        case .remove(let key):
          try check(key)
          part.items.append(Item(key: key, value: nil))
        case .removeAll(let range):
          part.removals.append((part.items.count, range))
        }
      }
    }
    return part
  }

  private init(_ parts: [Part]) {
    chunks = parts.map(\.bytes)
    var items: [Item] = []
    for part in parts {
      var start = 0
      for removal in part.removals {
        items += part.items[start..<removal.place]
        start = removal.place
        finish(&items)
        steps.append(.removeAll(removal.range))
      }
      items = items.isEmpty && start == 0 ? part.items : items + part.items[start...]
    }
    finish(&items)
  }

  private mutating func finish(_ items: inout [Item]) {
    guard !items.isEmpty else { return }
    steps.append(.items(EncodedChanges.sorted(items)))
    items = []
  }

  /// The items in the order of their keys, of several with one key only the last.
  static func sorted(_ items: [Item]) -> [Item] {
    let isAscending = zip(items, items.dropFirst()).allSatisfy { $0.key < $1.key }
    if isAscending { return items }
    let places = KeyPlace.sorted(count: items.count) { items[$0].key }
    var result: [Item] = []
    result.reserveCapacity(items.count)
    for (place, next) in zip(places, places.dropFirst()) {
      let item = items[place.index]
      if place.prefix != next.prefix || item.key != items[next.index].key { result.append(item) }
    }
    if let last = places.last { result.append(items[last.index]) }
    return result
  }

  /// Calls a closure with pointers to the bytes of all values, by chunk.
  func withChunks(_ body: (_ chunks: [UnsafeRawBufferPointer]) throws -> Void) rethrows {
    try withChunks(after: [], body)
  }

  private func withChunks(
    after pointers: [UnsafeRawBufferPointer], _ body: (_ chunks: [UnsafeRawBufferPointer]) throws -> Void
  ) rethrows {
    guard pointers.count < chunks.count else { return try body(pointers) }
    try chunks[pointers.count].withUnsafeBytes { try withChunks(after: pointers + [$0], body) }
  }

  /// Returns whether a database already holds what the changes would write, byte for byte.
  ///
  /// Batches that remove ranges are not compared; for them it returns `false`.
  func changesNothing(in database: RawDatabase) throws -> Bool {
    var changesNothing = true
    try withChunks { chunks in
      changesNothing = try steps.allSatisfy { step in
        guard case .items(let items) = step else { return false }
        return try items.allSatisfy { item in
          let stored = try database.value(forKey: item.key)
          guard let value = item.value else { return stored == nil }
          return stored?.hasSameBytes(as: UnsafeRawBufferPointer(rebasing: chunks[value.chunk][value.range])) ?? false
        }
      }
    }
    return changesNothing
  }

  /// Makes the changes.
  func write(to database: RawDatabase) throws {
    for step in steps {
      switch step {
      case .removeAll(let range): try database.removeAll(in: range)
      case .items(let items): try write(items, to: database)
      }
    }
  }

  private func write(_ items: [Item], to database: RawDatabase) throws {
    let cursor = try RawCursor(database)
    defer { cursor.close() }
    // Every key is before all that follow it, so what holds for the first holds for them all.
    let isLast = try items[0].key.withUnsafeBytes { first in
      try cursor.move(MDB_LAST).map { $0.key.precedes(first) } ?? true
    }
    try withChunks { chunks in
      for item in items {
        try item.key.withUnsafeBytes { key in
          guard let value = item.value else { return try cursor.removeValue(forKey: key) }
          let bytes = UnsafeRawBufferPointer(rebasing: chunks[value.chunk][value.range])
          try cursor.setValue(bytes, forKey: key, isLast: isLast)
        }
      }
    }
  }
}
#endif
