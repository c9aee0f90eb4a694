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
    let value: ByteRange?
  }

  /// The location of an encoded value.
  struct ByteRange: Sendable {
    let chunk: Int
    let range: Range<Int>
  }

  /// A group of changes that is written together.
  enum Step: Sendable {
    /// Changes to different keys, in key order.
    case items([Item])
    case removeAll(KeyRange)
  }

  /// A part of a batch with encoded values, in the order of the batch.
  private struct Part: Sendable {
    var items: [Item] = []
    /// The removed ranges, each with the number of items before it.
    var removals: [(itemIndex: Int, range: KeyRange)] = []
    var bytes: [UInt8] = []
  }

  private(set) var steps: [Step] = []
  private let chunks: [[UInt8]]

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
    self.init([try EncodedChanges.part(changes.changes[...], chunk: 0, check: check, encode: encode)])
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
    // Through a pointer, so that changes are not copied and values are not retained.
    try changes.withUnsafeBufferPointer { changes in
      for index in changes.indices {
        switch changes[index] {
        case .set(let key, let value):
          try check(key)
          let start = part.bytes.count
          try encode(value, key, &part.bytes)
          part.items.append(Item(key: key, value: ByteRange(chunk: chunk, range: start..<part.bytes.count)))
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
        items += part.items[start..<removal.itemIndex]
        start = removal.itemIndex
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

  /// Returns the items in key order.
  ///
  /// If several items have the same key, only the last is kept.
  static func sorted(_ items: [Item]) -> [Item] {
    let isAscending = zip(items, items.dropFirst()).allSatisfy { $0.key < $1.key }
    if isAscending { return items }
    let sortKeys = SortKey.sorted(count: items.count) { items[$0].key }
    var result: [Item] = []
    result.reserveCapacity(items.count)
    for (sortKey, next) in zip(sortKeys, sortKeys.dropFirst()) {
      let item = items[sortKey.index]
      if sortKey.prefix != next.prefix || item.key != items[next.index].key { result.append(item) }
    }
    if let last = sortKeys.last { result.append(items[last.index]) }
    return result
  }

  /// Calls a closure with pointers to the encoded bytes, by chunk.
  func withChunks(_ body: (_ chunks: [UnsafeRawBufferPointer]) throws -> Void) rethrows {
    try withChunks(after: [], body)
  }

  private func withChunks(
    after pointers: [UnsafeRawBufferPointer], _ body: (_ chunks: [UnsafeRawBufferPointer]) throws -> Void
  ) rethrows {
    guard pointers.count < chunks.count else { return try body(pointers) }
    try chunks[pointers.count].withUnsafeBytes { try withChunks(after: pointers + [$0], body) }
  }

  /// Returns whether a database already holds exactly the bytes that the changes would write.
  ///
  /// Returns `false` for batches that remove ranges, which are not compared.
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

  /// Writes the changes to a database.
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
    // The keys ascend: if the first key comes after all existing keys, so do the others.
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

/// A key to be sorted, represented by its first bytes as an integer and its index.
///
/// The integer alone decides most comparisons.
struct SortKey {
  /// The first eight bytes as a big-endian integer, padded with zeros.
  ///
  /// Keys with different prefixes are in the order of their prefixes.
  let prefix: UInt64

  /// The index of the key in the unsorted sequence.
  let index: Int

  /// Creates the representation of a key.
  init(_ key: StoreKey, index: Int) {
    self.index = index
    prefix = key.withUnsafeBytes { bytes in
      if bytes.count >= 8 { return UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)) }
      return bytes.reduce(0) { $0 << 8 | UInt64($1) } << (8 * (8 - UInt64(bytes.count)))
    }
  }

  /// The minimum number of keys for which a radix sort is faster than a comparison sort.
  private static let minimumRadixSortCount = 64

  /// Returns the keys in sorted order.
  ///
  /// The sort is stable.
  ///
  /// - Parameters:
  ///   - count: The number of keys.
  ///   - key: A closure that returns the key at an index.
  static func sorted(count: Int, key: (_ index: Int) -> StoreKey) -> [SortKey] {
    var sortKeys = (0..<count).map { SortKey(key($0), index: $0) }
    if count >= minimumRadixSortCount {
      sortByPrefix(&sortKeys)
    } else {
      sortKeys.sort { ($0.prefix, $0.index) < ($1.prefix, $1.index) }
    }
    var start = 0
    while start < count {
      let prefix = sortKeys[start].prefix
      let end = sortKeys[start...].firstIndex { $0.prefix != prefix } ?? count
      if end - start > 1 {
        sortKeys[start..<end].sort { left, right in
          let (leftKey, rightKey) = (key(left.index), key(right.index))
          return leftKey < rightKey || (leftKey == rightKey && left.index < right.index)
        }
      }
      start = end
    }
    return sortKeys
  }

  /// Sorts keys by prefix with a stable radix sort.
  ///
  /// It makes one pass for each byte that is not the same in all prefixes, from the last byte to the first (Knuth, The
  /// Art of Computer Programming 3, 5.2.5). Most keys that are written together differ in few bytes.
  private static func sortByPrefix(_ sortKeys: inout [SortKey]) {
    let differing = sortKeys.reduce(into: UInt64(0)) { $0 |= $1.prefix ^ sortKeys[0].prefix }
    var sorted = sortKeys
    for shift in stride(from: UInt64(0), to: 64, by: 8) where (differing >> shift) & 0xFF != 0 {
      var starts = [Int](repeating: 0, count: 256)
      for sortKey in sortKeys { starts[Int(sortKey.prefix >> shift & 0xFF)] += 1 }
      var sum = 0
      for byte in starts.indices { (starts[byte], sum) = (sum, sum + starts[byte]) }
      for sortKey in sortKeys {
        let byte = Int(sortKey.prefix >> shift & 0xFF)
        sorted[starts[byte]] = sortKey
        starts[byte] += 1
      }
      swap(&sortKeys, &sorted)
    }
  }
}
#endif
