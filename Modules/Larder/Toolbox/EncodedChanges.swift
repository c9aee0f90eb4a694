import Foundation

/// The encoded changes of a batch, in the order that a tree of sorted keys writes fastest.
///
/// A store makes them of the batch of ``DataStore/apply(_:)``, before it takes the lock or begins the transaction that
/// writes them:
///
/// ```swift
/// let changes = try await coder.encoded(batch, for: information, during: .apply)
/// for step in changes.steps {
///   switch step {
///   case .items(let items): for item in items { put(item.key, item.value.map { changes.bytes[$0.part][$0.range] }) }
///   case .removeAll(let range): delete(range)
///   }
/// }
/// ```
///
/// Between range removals, changes to different keys may be reordered. They are sorted by key. LMDB then writes two to
/// four times faster, into a file half the size.
public struct EncodedChanges: Sendable {
  /// A change to one key.
  public struct Item: Sendable {
    /// The key.
    public let key: StoreKey

    /// The location of the encoded value, or `nil` for a removal.
    public let value: Location?

    /// Creates a change.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - value: The location of the encoded value, or `nil` for a removal.
    @inlinable
    public init(key: StoreKey, value: Location?) {
      self.key = key
      self.value = value
    }
  }

  /// The location of an encoded value: a part of ``EncodedChanges/bytes``, and a range in it.
  public struct Location: Sendable, Equatable {
    /// The index of the part, in ``EncodedChanges/bytes``.
    public let part: Int

    /// The indices of the bytes in the part.
    public let range: Range<Int>

    /// Creates a location.
    ///
    /// - Parameters:
    ///   - part: The index of the part.
    ///   - range: The indices of the bytes in the part.
    @inlinable
    public init(part: Int, range: Range<Int>) {
      self.part = part
      self.range = range
    }
  }

  /// A group of changes that is written together.
  public enum Step: Sendable {
    /// Changes to different keys, in key order.
    case items([Item])
    /// The removal of all entries in a range.
    case removeAll(KeyRange)
  }

  /// A part of a batch, in the order of the batch.
  @usableFromInline
  struct Part: Sendable {
    @usableFromInline var items: [Item] = []
    /// The removed ranges, each with the number of items before it.
    @usableFromInline var removals: [(itemCount: Int, range: KeyRange)] = []
    @usableFromInline var bytes: [UInt8] = []

    @usableFromInline init() {}
  }

  /// The changes, in groups.
  public var steps: [Step] = []

  /// The encoded values, one array for each part of the batch.
  public let bytes: [[UInt8]]

  /// The number of changes that a task encodes.
  ///
  /// It is small, so threads that are interrupted leave more tasks to the others, and so that little is copied when the
  /// array of encoded values grows.
  @usableFromInline static let countPerTask = 4096

  /// The number of processors.
  ///
  /// Cached because on Linux the lookup reads files.
  private static let processorCount = ProcessInfo.processInfo.activeProcessorCount

  /// Encodes a batch.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - check: A closure that throws if a key is invalid. It is called here because a separate pass over the changes
  ///     would copy each value.
  ///   - encode: A closure that appends the bytes of a value.
  /// - Throws: The errors that `check` and `encode` throw.
  @inlinable
  public init<Value>(
    _ changes: ChangeBatch<Value>, check: (_ key: StoreKey) throws -> Void,
    encode: (_ value: Value, _ key: StoreKey, _ bytes: inout [UInt8]) throws -> Void
  ) throws {
    self.init([try EncodedChanges.part(0, of: changes.changes[...], check: check, encode: encode)])
  }

  /// Returns whether a batch is large enough to be encoded on several threads.
  ///
  /// - Parameter count: The number of changes of the batch.
  public static func areWorthThreads(_ count: Int) -> Bool {
    processorCount > 1 && count >= 2 * countPerTask
  }

  /// Encodes a large batch on several threads, because encoding takes longer than writing.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - check: A closure that throws if a key is invalid.
  ///   - encode: A closure that appends the bytes of a value.
  /// - Throws: The error that `check` or `encode` throws for the first change that fails.
  @inlinable
  public init<Value: Sendable>(
    concurrently changes: ChangeBatch<Value>, check: @escaping @Sendable (_ key: StoreKey) throws -> Void,
    encode: @escaping @Sendable (_ value: Value, _ key: StoreKey, _ bytes: inout [UInt8]) throws -> Void
  ) async throws {
    let count = max(1, changes.count / EncodedChanges.countPerTask)
    let parts = await withTaskGroup(of: (Int, Result<Part, any Error>).self) { group in
      for number in 0..<count {
        let slice = changes.changes[changes.count * number / count..<changes.count * (number + 1) / count]
        group.addTask {
          (number, Result { try EncodedChanges.part(number, of: slice, check: check, encode: encode) })
        }
      }
      return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
    self.init(try (0..<count).compactMap { try parts[$0]?.get() })
  }

  @inlinable
  static func part<Value>(
    _ number: Int, of changes: ArraySlice<BatchChange<Value>>, check: (_ key: StoreKey) throws -> Void,
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
          part.items.append(Item(key: key, value: Location(part: number, range: start..<part.bytes.count)))
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

  @usableFromInline
  init(_ parts: [Part]) {
    bytes = parts.map(\.bytes)
    var items: [Item] = []
    items.reserveCapacity(parts.reduce(0) { $0 + $1.items.count })
    for part in parts {
      var start = 0
      for removal in part.removals {
        items += part.items[start..<removal.itemCount]
        finish(&items)
        steps.append(.removeAll(removal.range))
        start = removal.itemCount
      }
      items += part.items[start...]
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
  ///
  /// - Parameter items: The items, in the order of the batch.
  public static func sorted(_ items: [Item]) -> [Item] {
    let isAscending = items.indices.dropFirst().allSatisfy { items[$0 - 1].key < items[$0].key }
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
}

extension ValueCoder {
  /// Encodes a batch.
  ///
  /// More than 64 changes, or changes with more than 64 KiB, are encoded off the caller's actor; several thousand changes are
  /// encoded on several threads.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - information: The information of the store. It checks the keys.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError``: `invalidKey`, or the errors of
  ///   ``append(_:forKey:replacing:passesKey:to:during:)``.
  public func encoded(
    _ changes: ChangeBatch<Value>, for information: StoreInformation, during operation: StoreOperation
  ) async throws -> EncodedChanges {
    guard EncodedChanges.areWorthThreads(changes.count) else {
      return try await BulkWork.run(atMost: changes.count) { allowance in
        try encoded(changes, &allowance, for: information, during: operation)
      }
    }
    return try await EncodedChanges(concurrently: changes) { key in
      try information.check(key, for: operation)
    } encode: { value, key, bytes in
      try append(value, forKey: key, to: &bytes, during: operation)
    }
  }

  // Specialized because encoding bytes is so cheap that looking up the generic types of each change would double the
  // cost.

  /// Encodes a batch on the calling thread.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - allowance: The number of bytes that may be encoded.
  ///   - information: The information of the store. It checks the keys.
  ///   - operation: The operation, for errors.
  /// - Throws: As ``encoded(_:for:during:)``; the error of an exceeded allowance, which ``BulkWork/run(atMost:_:)`` catches.
  @_specialize(where Value == [UInt8])
  public func encoded(
    _ changes: ChangeBatch<Value>, _ allowance: inout BulkWork.Allowance, for information: StoreInformation,
    during operation: StoreOperation
  ) throws -> EncodedChanges {
    try EncodedChanges(changes) { key in
      try information.check(key, for: operation)
    } encode: { value, key, bytes in
      _ = try allowance.encode {
        let start = bytes.count
        try append(value, forKey: key, to: &bytes, during: operation)
        return start..<bytes.count
      }
    }
  }
}
