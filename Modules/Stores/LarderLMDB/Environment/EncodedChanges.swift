#if LMDB
import CLMDB
import Foundation
import Larder

/// The encoded changes of a batch, in the order that LMDB writes fastest.
///
/// Between range removals, changes to different keys may be reordered. They are sorted by key. LMDB then writes two to
/// four times faster, into a file half the size.
struct EncodedChanges: Sendable {
  /// A change to one key.
  struct Item: Sendable {
    let key: StoreKey
    /// The location of the encoded value, or `nil` for a removal.
    let value: Location?
  }

  /// The location of an encoded value: a part of ``EncodedChanges/bytes``, and a range in it.
  struct Location: Sendable, Equatable {
    let part: Int
    let range: Range<Int>
  }

  /// A group of changes that is written together.
  enum Step: Sendable {
    /// Changes to different keys, in key order.
    case items([Item])
    case removeAll(KeyRange)
  }

  /// A part of a batch, with the location of each value in its own bytes.
  private struct Part: Sendable {
    var changes: [Change<Range<Int>>] = []
    var bytes: [UInt8] = []
  }

  private(set) var steps: [Step] = []

  /// The encoded values, one part for each thread that encoded them.
  private(set) var bytes: [[UInt8]]

  /// The minimum number of changes that justifies a task.
  private static let minimumCountPerTask = 4096

  /// The maximum number of encoding threads.
  ///
  /// Cached because on Linux the lookup reads files.
  private static let threadCount = ProcessInfo.processInfo.activeProcessorCount

  /// Encodes a batch.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - check: A closure that throws if a key is invalid. It is called here because a separate pass over the changes
  ///     would copy each value.
  ///   - encode: A closure that appends the bytes of a value.
  /// - Throws: The errors that `check` and `encode` throw.
  init<Value>(
    _ changes: ChangeBatch<Value>, check: (_ key: StoreKey) throws -> Void,
    encode: (_ value: Value, _ key: StoreKey, _ bytes: inout [UInt8]) throws -> Void
  ) throws {
    self.init([try EncodedChanges.part(changes.changes[...], check: check, encode: encode)])
  }

  /// Returns whether a batch is large enough to be encoded on several threads.
  static func areWorthThreads(_ count: Int) -> Bool {
    threadCount > 1 && count >= 2 * minimumCountPerTask
  }

  /// Encodes a large batch on several threads, because encoding takes longer than writing.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - check: A closure that throws if a key is invalid.
  ///   - encode: A closure that appends the bytes of a value.
  /// - Throws: The error that `check` or `encode` throws for the first change that fails.
  init<Value: Sendable>(
    concurrently changes: ChangeBatch<Value>, check: @escaping @Sendable (_ key: StoreKey) throws -> Void,
    encode: @escaping @Sendable (_ value: Value, _ key: StoreKey, _ bytes: inout [UInt8]) throws -> Void
  ) async throws {
    let count = max(1, min(EncodedChanges.threadCount, changes.count / EncodedChanges.minimumCountPerTask))
    let parts = await withTaskGroup(of: (Int, Result<Part, any Error>).self) { group in
      for number in 0..<count {
        let slice = changes.changes[changes.count * number / count..<changes.count * (number + 1) / count]
        group.addTask {
          (number, Result { try EncodedChanges.part(slice, check: check, encode: encode) })
        }
      }
      return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
    self.init(try (0..<count).compactMap { try parts[$0]?.get() })
  }

  private static func part<Value>(
    _ changes: ArraySlice<Change<Value>>, check: (_ key: StoreKey) throws -> Void,
    encode: (_ value: Value, _ key: StoreKey, _ bytes: inout [UInt8]) throws -> Void
  ) throws -> Part {
    var part = Part()
    part.changes.reserveCapacity(changes.count)
    // Through a pointer, so that changes are not copied and values are not retained.
    try changes.withUnsafeBufferPointer { changes in
      for index in changes.indices {
        switch changes[index] {
        case .set(let key, let value):
          try check(key)
          let start = part.bytes.count
          try encode(value, key, &part.bytes)
          part.changes.append(.set(key, start..<part.bytes.count))
        case .remove(let key):
          try check(key)
          part.changes.append(.remove(key))
        case .removeAll(let range):
          part.changes.append(.removeAll(range))
        }
      }
    }
    return part
  }

  private init(_ parts: [Part]) {
    bytes = parts.map(\.bytes)
    var items: [Item] = []
    for (number, part) in parts.enumerated() {
      items.reserveCapacity(items.count + part.changes.count)
      for change in part.changes {
        switch change {
        case .set(let key, let value):
          items.append(Item(key: key, value: Location(part: number, range: value)))
        case .remove(let key):
          items.append(Item(key: key, value: nil))
        case .removeAll(let range):
          finish(&items)
          steps.append(.removeAll(range))
        }
      }
    }
    finish(&items)
  }

  private mutating func finish(_ items: inout [Item]) {
    guard !items.isEmpty else { return }
    steps.append(.items(EncodedChanges.sorted(items)))
    items = []
  }

  /// Returns the items in key order.
  ///
  /// If several items have the same key, only the last is kept.
  static func sorted(_ items: [Item]) -> [Item] {
    let isAscending = zip(items, items.dropFirst()).allSatisfy { $0.key < $1.key }
    if isAscending { return items }
    // Indices, because items are large. Items with the same key stay in their order.
    let indices = items.indices.sorted { (items[$0].key, $0) < (items[$1].key, $1) }
    var result: [Item] = []
    result.reserveCapacity(items.count)
    for (index, next) in zip(indices, indices.dropFirst()) where items[index].key != items[next].key {
      result.append(items[index])
    }
    if let last = indices.last { result.append(items[last]) }
    return result
  }

  /// Returns whether a database already holds exactly the bytes that the changes would write.
  ///
  /// Returns `false` for batches that remove ranges, which are not compared.
  func changesNothing(in database: RawDatabase) throws -> Bool {
    try steps.allSatisfy { step in
      guard case .items(let items) = step else { return false }
      return try items.allSatisfy { item in
        let stored = try database.value(forKey: item.key)
        guard let value = item.value else { return stored == nil }
        return bytes[value.part].withUnsafeBytes {
          stored?.hasSameBytes(as: UnsafeRawBufferPointer(rebasing: $0[value.range])) ?? false
        }
      }
    }
  }

  /// Writes the changes to a database.
  ///
  /// - Returns: Whether anything was set or removed.
  func write(to database: RawDatabase) throws -> Bool {
    var hasWritten = false
    for step in steps {
      let hasChanged =
        switch step {
        case .removeAll(let range): try database.removeAll(in: range)
        case .items(let items): try write(items, to: database)
        }
      if hasChanged { hasWritten = true }
    }
    return hasWritten
  }

  private func write(_ items: [Item], to database: RawDatabase) throws -> Bool {
    var hasWritten = false
    let cursor = try RawCursor(database)
    defer { cursor.close() }
    // The keys ascend: if the first key comes after all existing keys, so do the others.
    let isLast = try items[0].key.withUnsafeBytes { first in
      try cursor.move(MDB_LAST).map { $0.key.precedes(first) } ?? true
    }
    for item in items {
      let hasChanged = try item.key.withUnsafeBytes { key in
        guard let value = item.value else { return try cursor.removeValue(forKey: key) }
        try bytes[value.part].withUnsafeBytes {
          try cursor.setValue(UnsafeRawBufferPointer(rebasing: $0[value.range]), forKey: key, isLast: isLast)
        }
        return true
      }
      if hasChanged { hasWritten = true }
    }
    return hasWritten
  }
}
#endif
