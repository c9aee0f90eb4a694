#if LMDB
import CLMDB
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
    let value: Range<Int>?
  }

  /// Changes that belong together.
  enum Step: Sendable {
    /// Changes to different keys, in the order of the keys.
    case items([Item])
    case removeAll(KeyRange)
  }

  private(set) var steps: [Step] = []
  private var bytes: [UInt8] = []

  /// After how many values it is estimated how many bytes there will be.
  private static let sampleCount = 64

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
    var items: [Item] = []
    items.reserveCapacity(changes.count)
    for change in changes.changes {
      switch change {
      case .set(let key, let value):
        try check(key)
        let start = bytes.count
        try encode(value, key, &bytes)
        items.append(Item(key: key, value: start..<bytes.count))
        if items.count == EncodedChanges.sampleCount {
          // An eighth more, so that a little above the estimate moves nothing.
          bytes.reserveCapacity(bytes.count / EncodedChanges.sampleCount * changes.count / 8 * 9)
        }
      case .remove(let key):
        try check(key)
        items.append(Item(key: key, value: nil))
      case .removeAll(let range):
        finish(&items)
        steps.append(.removeAll(range))
      }
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
    let order = items.indices.sorted { left, right in
      items[left].key < items[right].key || (items[left].key == items[right].key && left < right)
    }
    var result: [Item] = []
    result.reserveCapacity(items.count)
    for index in order {
      if result.last?.key == items[index].key { result.removeLast() }
      result.append(items[index])
    }
    return result
  }

  /// Makes the changes.
  func write(to database: RawDatabase) throws {
    try bytes.withUnsafeBytes { bytes in
      for step in steps {
        switch step {
        case .removeAll(let range): try database.removeAll(in: range)
        case .items(let items): try EncodedChanges.write(items, bytes: bytes, to: database)
        }
      }
    }
  }

  private static func write(_ items: [Item], bytes: UnsafeRawBufferPointer, to database: RawDatabase) throws {
    let cursor = try RawCursor(database)
    defer { cursor.close() }
    // Every key is before all that follow it, so what holds for the first holds for them all.
    let isLast = try items[0].key.withUnsafeBytes { first in
      try cursor.move(MDB_LAST).map { $0.key.precedes(first) } ?? true
    }
    for item in items {
      try item.key.withUnsafeBytes { key in
        if let value = item.value {
          try cursor.setValue(UnsafeRawBufferPointer(rebasing: bytes[value]), forKey: key, isLast: isLast)
        } else {
          try cursor.removeValue(forKey: key)
        }
      }
    }
  }
}
#endif
