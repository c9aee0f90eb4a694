/// The translation between the keys of a layer and those of its base, which begin with a prefix.
///
/// A layer has the entries of the base whose keys begin with the prefix and are longer than it. Its own keys are without the
/// prefix. ``KeyMappingStore`` and ``TypedView`` have one, and a layer of yours that keeps entries and records of its own in
/// a base has one for its entries.
///
/// ```swift
/// let prefix = KeyPrefix("users/")
/// let stored = prefix.storedKey("7")  // "users/7"
/// let key = prefix.key(ofStored: stored)  // "7"
/// let range = prefix.storedRange(.prefix("a"))
/// ```
public struct KeyPrefix: Sendable, Hashable {
  /// The first of all keys.
  private static let firstKey = StoreKey(bytes: [0])

  /// The prefix.
  ///
  /// It may be empty.
  public let prefix: StoreKey

  /// Creates a translation.
  ///
  /// - Parameter prefix: The prefix. It may be empty.
  public init(_ prefix: StoreKey) {
    self.prefix = prefix
  }

  /// Returns the prefix followed by a key.
  ///
  /// - Parameter key: The key of the layer. It has been checked.
  public func storedKey(_ key: StoreKey) -> StoreKey {
    prefix.isEmpty ? key : prefix.appending(key)
  }

  /// Returns the key of the layer for a key of the base, or `nil` if the layer has no such key.
  ///
  /// - Parameter key: The key of the base.
  public func key(ofStored key: StoreKey) -> StoreKey? {
    guard key.count > prefix.count, key.hasPrefix(prefix) else { return nil }
    return withoutPrefix(key)
  }

  /// Returns a key that begins with the prefix without it.
  func withoutPrefix(_ key: StoreKey) -> StoreKey {
    prefix.isEmpty ? key : StoreKey(bytes: key.bytes.dropFirst(prefix.count))
  }

  /// Returns the range of the base that has the keys of a range of the layer, and no others.
  ///
  /// - Parameter range: The range of the layer.
  public func storedRange(_ range: KeyRange) -> KeyRange {
    // The entry whose key equals the prefix has no key in the layer, so the layer begins at the next key.
    let lowerBound = range.lowerBound.isEmpty && !prefix.isEmpty ? KeyPrefix.firstKey : range.lowerBound
    return KeyRange(
      from: storedKey(lowerBound), upTo: range.upperBound.map(storedKey) ?? KeyRange.prefix(prefix).upperBound)
  }

  /// Returns the part of a range of the base that belongs to the layer, with the keys of the layer.
  ///
  /// - Parameter range: The range of the base.
  /// - Returns: The range. It is empty if it has no key of the layer.
  public func range(ofStored range: KeyRange) -> KeyRange {
    let all = KeyRange.prefix(prefix)
    let isBehind = all.upperBound.map { range.lowerBound >= $0 } ?? false
    let isBefore = range.upperBound.map { $0 <= prefix } ?? false
    guard !isBehind, !isBefore else { return KeyRange(from: "", upTo: "") }
    let lowerBound = range.lowerBound.hasPrefix(prefix) ? withoutPrefix(range.lowerBound) : ""
    return KeyRange(
      // The first key that a store can have, as in the stored range of all keys.
      from: lowerBound == KeyPrefix.firstKey && !prefix.isEmpty ? "" : lowerBound,
      upTo: range.upperBound.flatMap { $0.hasPrefix(prefix) ? withoutPrefix($0) : nil })
  }

  /// Returns a change of the base as one of the layer, or `nil` if it does not concern the layer.
  ///
  /// - Parameter change: The change of the base.
  public func change(ofStored change: StoreChange) -> StoreChange? {
    switch change {
    case .key(let key):
      return self.key(ofStored: key).map { .key($0) }
    case .range(let range):
      let range = self.range(ofStored: range)
      return range.isEmpty ? nil : .range(range)
    }
  }
}

/// Damage in the base of a layer, with the keys of the layer.
private struct MappedUnreadableKeysError: UnreadableKeysError, CustomStringConvertible {
  let keys: KeyRange
  let damage: any UnreadableKeysError
  var description: String { "\(damage)" }
}

extension StoreError {
  /// Returns the error of a layer for an error of its base, with the keys of the layer.
  ///
  /// Its key, those of an ``UnreadableKeysError``, and those of a store error that caused it are keys of the layer. A key of
  /// the base that the layer does not have is left out.
  ///
  /// - Parameters:
  ///   - prefix: The prefix of the layer's keys in the base.
  ///   - operation: The operation of the layer. Defaults to `nil`, for that of this error.
  ///   - store: The name of the layer.
  public func translated(
    by prefix: KeyPrefix, during operation: StoreOperation? = nil, store: String
  ) -> StoreError {
    var error = self
    error.operation = operation ?? self.operation
    error.store = store
    guard !prefix.prefix.isEmpty else { return error }
    error.key = key.flatMap { prefix.key(ofStored: $0) }
    switch underlying {
    case let damage as any UnreadableKeysError:
      error.underlying = MappedUnreadableKeysError(keys: prefix.range(ofStored: damage.keys), damage: damage)
    case let cause as StoreError:
      error.underlying = cause.translated(by: prefix, store: cause.store)
    default: break
    }
    return error
  }
}

extension KeyPrefix {
  /// Calls the base of a layer, and translates its errors; see ``StoreError/translated(by:during:store:)``.
  ///
  /// - Parameters:
  ///   - operation: The operation of the layer.
  ///   - store: The name of the layer.
  ///   - body: A closure that calls the base.
  /// - Throws: The error that `body` throws, as that of the layer.
  public func translating<Result>(
    _ operation: StoreOperation, of store: @autoclosure () -> String, _ body: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await body()
    } catch let error as StoreError {
      throw error.translated(by: self, during: operation, store: store())
    }
  }
}
