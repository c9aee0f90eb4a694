/// A collection of entries, each a key with its value, in key order.
///
/// Every store and every decorator conforms to this protocol and keeps the same promises, so you can exchange and stack
/// them. The conformance suite in `LarderTesting` checks each promise:
///
/// 1. **Keys** are byte strings of 1 to 511 bytes, ordered byte by byte. Every operation that takes a key rejects any
///    other key with ``StoreError/Code/invalidKey`` before it changes anything.
/// 2. **Values** round-trip exactly. A stored `nil` of an optional `Value` differs from a missing key.
/// 3. **Missing** is `nil`, never an error. Removing a missing key is a no-op. An error is never reported as missing.
/// 4. **``apply(_:)``** is atomic for readers, crashes and errors. Its changes take effect in sequence.
/// 5. **`update`** is atomic over its keys against every other writer. Values that its body did not assign stay as they are.
/// 6. **Scans** return entries in key order or in reverse. One call returns one consistent snapshot.
/// 7. **Durability**: When a write returns, its effect survives the death of the process, and a power failure if
///    ``StoreInformation/durability`` promises it.
/// 8. **Isolation of damage**: An entry that cannot be decoded leaves every other entry readable, and is never deleted
///    because of it.
/// 9. **Lifecycle**: ``close()`` waits for running operations. Later operations throw ``StoreError/Code/closed``.
/// 10. **Cancellation** before a write starts throws `CancellationError` and changes nothing. A write that has started
///     completes.
/// 11. **Errors** are ``StoreError``, `CancellationError`, or the error that the body of an update threw.
/// 12. **Bad input** is rejected with a clear error and left as it is.
///
/// ## Using a store
///
/// The requirements are few and general. For everyday use there are methods built on them, such as
/// `setValue(_:forKey:)`, `removeValue(forKey:)`, `contains(_:)`, `entries(in:)` as an asynchronous sequence, and
/// `pages(of:size:)`.
///
/// ## Isolation
///
/// A store is `Sendable`, and its operations run on the caller's actor. A store can satisfy a requirement with a
/// synchronous method. If you have the concrete type, you call that method without `await`.
///
/// ## Implementing a store
///
/// Implement every requirement. They have no default implementations, so a decorator that forgets to forward one does not
/// compile. Only the description has one. Check arguments with the methods of ``StoreInformation``, and run the conformance suite of `LarderTesting`
/// against your store.
///
/// ```swift
/// func visits(of name: String, in store: some DataStore<User>) async throws -> Int {
///   try await store.value(forKey: "user:\(name)")?.visits ?? 0
/// }
/// ```
public protocol DataStore<Value>: Sendable, CustomStringConvertible {
  /// The type of the values.
  associatedtype Value: Sendable

  /// The name, the limits and the durability of the store.
  var information: StoreInformation { get }

  /// Returns the value of a key.
  ///
  /// ```swift
  /// guard let user = try await store.value(forKey: "user:7") else { throw UnknownUser() }
  /// ```
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` if the key is missing.
  /// - Throws: ``StoreError`` with `invalidKey`; `corrupted` or `undecodable` if the stored bytes cannot be decoded;
  ///   `closed`; `ioFailed`.
  func value(forKey key: StoreKey) async throws -> Value?

  /// Returns the values of several keys as they are at one moment.
  ///
  /// ```swift
  /// let balances = try await accounts.values(forKeys: ["alice", "bob"])  // of the same moment
  /// ```
  ///
  /// - Parameter keys: The keys, in any order. A key may occur more than once.
  /// - Returns: One element for each key, in the order of `keys`: the value, or `nil` if the key is missing.
  /// - Throws: ``StoreError`` with `invalidKey` if any key is invalid; `corrupted` or `undecodable`, with the first
  ///   such key in the order of `keys`, if a value cannot be decoded; `closed`; `ioFailed`.
  func values(forKeys keys: [StoreKey]) async throws -> [Value?]

  /// Returns the first entries of a range as they are at one moment.
  ///
  /// ```swift
  /// let latest = try await orders.entries(in: "2026-01"..<"2026-02", limit: 20, order: .descending)
  /// ```
  ///
  /// - Parameters:
  ///   - range: The range of keys to read. An empty range gives an empty result.
  ///   - limit: The maximum number of entries to return: 0 for no entry, `Int.max` for all.
  ///   - order: The direction of the scan. It decides whether the first entries have the lowest or the highest keys.
  /// - Returns: The entries, in the given order.
  /// - Throws: ``StoreError`` with `invalidArgument` if the limit is negative; `corrupted` or `undecodable`, with the
  ///   first such key, if a value cannot be decoded; `closed`; `ioFailed`.
  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>]

  /// Returns the first keys of a range as they are at one moment, without decoding any value.
  ///
  /// ```swift
  /// let first = try await store.keys(in: .prefix("user:"), limit: 1, order: .ascending).first
  /// ```
  ///
  /// - Parameters:
  ///   - range: The range of keys to read. An empty range gives an empty result.
  ///   - limit: The maximum number of keys to return: 0 for no key, `Int.max` for all.
  ///   - order: The direction of the scan. It decides whether the first keys are the lowest or the highest.
  /// - Returns: The keys, in the given order.
  /// - Throws: ``StoreError`` with `invalidArgument` if the limit is negative; `closed`; `ioFailed`.
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey]

  /// Returns the number of entries in a range.
  ///
  /// ```swift
  /// let userCount = try await store.count(in: .prefix("user:"))
  /// ```
  ///
  /// - Parameter range: The range of keys to count.
  /// - Returns: The number of entries.
  /// - Throws: ``StoreError`` with `closed`; `ioFailed`.
  func count(in range: KeyRange) async throws -> Int

  /// Applies several changes atomically.
  ///
  /// The changes take effect in sequence. A later change to a key replaces an earlier one, so the removal of a range
  /// followed by sets replaces the content of the range. No reader, crash or error ever exposes a part of the batch.
  ///
  /// ```swift
  /// try await store.apply([.set("user:ada", user), .remove("invitation:17")])  // both, or neither
  /// ```
  ///
  /// - Parameter changes: The changes. An empty batch is a no-op.
  /// - Throws: ``StoreError`` with `invalidKey`, `encodingFailed` or `valueTooLarge` if any change cannot be made, with
  ///   nothing changed; `full`; `ioFailed`; `closed`. `CancellationError` if the task was cancelled before the write
  ///   started. ``StoreError/outcome`` indicates whether the changes may have taken effect.
  func apply(_ changes: ChangeBatch<Value>) async throws

  /// Reads the values of several keys, passes them to a closure that can change them, and writes back what it assigned,
  /// as one step.
  ///
  /// No other writer of the store comes between the reading and the writing, neither in this process nor, if the store
  /// can be shared, in another one.
  ///
  /// This is the form that a store implements. Its body cannot throw, so no store and no decorator has to tell an error
  /// of the body from one of its own. For bodies that throw, and for those that always commit, there are methods built
  /// on it.
  ///
  /// - Parameters:
  ///   - keys: The keys to read and write. They must be distinct.
  ///   - body: A closure that receives a slot for each key, in the order of `keys`, and decides whether the slots that it
  ///     assigned are written. After ``UpdateDecision/discard(_:)``, or if no slot was assigned, nothing is. It runs once,
  ///     unless the store repeats a commit that is known to have had no effect. In that case it runs again on the current
  ///     values, and only its last run counts. It must not call the store.
  /// - Returns: The result of the decision.
  /// - Throws: ``StoreError`` as ``apply(_:)``, `corrupted` or `undecodable` if a stored value cannot be decoded, and
  ///   `invalidArgument` if a key occurs twice.
  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result

  /// Ensures that every earlier write survives a power failure.
  ///
  /// The method ignores cancellation. It is a no-op for a store that keeps its entries in memory only.
  ///
  /// ```swift
  /// let store = try await JSONFileStore<User>(path: "import.json", durability: .buffered)
  /// for user in imported { try await store.setValue(user, forKey: "user:\(user.name)") }
  /// try await store.synchronize()  // from here on, a power failure loses nothing
  /// ```
  ///
  /// - Throws: ``StoreError`` with `closed`; `ioFailed`; `full`.
  func synchronize() async throws

  /// Waits for running operations, makes every write durable, and releases the resources of the store.
  ///
  /// Closing a closed store is a no-op. Every other operation on a closed store throws ``StoreError/Code/closed``, even
  /// in a cancelled task, although invalid arguments may be rejected first. Closing a decorator closes its base. The
  /// method ignores cancellation.
  ///
  /// ```swift
  /// let store = try await JSONFileStore<User>(path: "users.json")
  /// try await store.setValue(ada, forKey: "user:1")
  /// try await store.close()
  /// ```
  ///
  /// - Throws: ``StoreError`` with `ioFailed`; `full`. The store is closed even if the method throws.
  func close() async throws
}

/// A key and its value.
///
/// ```swift
/// for entry in try await store.entries(in: .prefix("user:"), limit: 20, order: .ascending) {
///   print(entry.key, entry.value.name)
/// }
/// ```
public struct StoreEntry<Value> {
  /// The key.
  public let key: StoreKey

  /// The value.
  public let value: Value

  /// Creates an entry.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - value: The value.
  @inlinable
  public init(key: StoreKey, value: Value) {
    self.key = key
    self.value = value
  }
}

extension StoreEntry: Sendable where Value: Sendable {}
extension StoreEntry: Equatable where Value: Equatable {}
extension StoreEntry: Hashable where Value: Hashable {}

/// The direction of a scan.
///
/// ```swift
/// let latest = try await orders.entries(in: .all, limit: 1, order: .descending).first
/// ```
public enum ScanOrder: Sendable, Hashable, CaseIterable {
  /// From the lowest key to the highest.
  case ascending
  /// From the highest key to the lowest.
  case descending
}

extension DataStore {
  /// The name of the type, and the name of the store in parentheses, such as `LMDBStore(photos)`.
  public var description: String { "\(String(describing: Self.self).prefix { $0 != "<" })(\(information.name))" }
}
