/// A place that keeps values under keys, in key order: the one protocol of Larder.
///
/// Every store and every decorator conforms to it and keeps the same promises, so that they can be exchanged and
/// stacked. The promises, in short (the suite in `LarderTesting` checks each of them):
///
/// 1. **Keys** are byte strings of 1 to 511 bytes, ordered byte by byte. Any other key is refused with
///    ``StoreError/Code/invalidKey`` by every operation that takes one, before anything is touched.
/// 2. **Values** round-trip exactly. A stored `nil` of an optional `Value` is not a missing key.
/// 3. **Missing** is `nil`, never an error; removing what is missing is fine. An error is never reported as missing.
/// 4. **``apply(_:)``** is atomic for readers, crashes and errors; its changes take effect in sequence.
/// 5. **``update(_:_:)``** is atomic over its keys against every other writer.
/// 6. **Scans** come in key order or reversed; one call is one consistent snapshot.
/// 7. **Durability**: when a write returns, its effect survives the death of the process, and power loss where
///    ``StoreInformation/acknowledgement`` says so.
/// 8. **Isolation of damage**: one entry that cannot be decoded leaves every other readable, and is never deleted for it.
/// 9. **Lifecycle**: ``close()`` waits for running operations; later ones throw ``StoreError/Code/closed``.
/// 10. **Cancellation** before a write starts throws `CancellationError` and changes nothing; a started write completes.
/// 11. **Errors** are ``StoreError``, `CancellationError`, or what the body of an update threw.
/// 12. **Bad input** is refused with a clear error, and nothing is lost.
///
/// ## Using a store
///
/// The requirements are few and general. What one calls day to day is built on them: `setValue(_:forKey:)`,
/// `removeValue(forKey:)`, `contains(_:)`, `entries(in:)` as an asynchronous sequence, `pages(of:size:)`, and so on.
///
/// ## Isolation
///
/// A store is `Sendable`, and its operations run where the caller is. A store may satisfy a requirement by a plain
/// synchronous method; whoever holds the concrete type then calls it without `await`.
///
/// ## Writing a store of your own
///
/// Implement every requirement: none has a default, so that a decorator cannot forget to forward one. Check arguments
/// with the methods of ``StoreInformation``, and run the conformance suite of `LarderTesting` over the result.
public protocol DataStore<Value>: Sendable {
  /// What the store keeps under each key.
  associatedtype Value: Sendable

  /// What the store is called, what it can take, and what its acknowledgement of a write means.
  var information: StoreInformation { get }

  /// Reads the value of one key.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` where the key is missing.
  /// - Throws: ``StoreError``: `invalidKey`; `corrupted` where the stored bytes cannot be decoded; `closed`; `ioFailed`.
  func value(forKey key: StoreKey) async throws -> Value?

  /// Reads the values of several keys as they are at one moment.
  ///
  /// - Parameter keys: The keys, in any order; one may stand more than once.
  /// - Returns: One slot for each key, in the order of `keys`: the value, or `nil` where the key is missing.
  /// - Throws: ``StoreError``: `invalidKey` where any key is invalid; `corrupted` naming the first key, in the order of
  ///   `keys`, whose value cannot be decoded; `closed`; `ioFailed`.
  func values(forKeys keys: [StoreKey]) async throws -> [Value?]

  /// Reads the first entries of a range as they are at one moment.
  ///
  /// - Parameters:
  ///   - range: The keys to look at. A range that contains no key gives an empty result.
  ///   - limit: The most entries to return; 0 gives none, `Int.max` all of them.
  ///   - order: Whether "first" means the lowest or the highest keys.
  /// - Returns: Entries in the given order.
  /// - Throws: ``StoreError``: `invalidArgument` where the limit is negative; `corrupted` naming the first key whose
  ///   value cannot be decoded; `closed`; `ioFailed`.
  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>]

  /// Reads the first keys of a range as they are at one moment, without decoding any value.
  ///
  /// - Parameters:
  ///   - range: The keys to look at. A range that contains no key gives an empty result.
  ///   - limit: The most keys to return; 0 gives none, `Int.max` all of them.
  ///   - order: Whether "first" means the lowest or the highest keys.
  /// - Returns: Keys in the given order.
  /// - Throws: ``StoreError``: `invalidArgument` where the limit is negative; `closed`; `ioFailed`.
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey]

  /// Counts the entries of a range.
  ///
  /// - Parameter range: The keys to look at.
  /// - Returns: The number of entries.
  /// - Throws: ``StoreError``: `closed`; `ioFailed`.
  func count(in range: KeyRange) async throws -> Int

  /// Makes several changes, all or none of them.
  ///
  /// The changes take effect in sequence: a later change to a key wins, and the removal of a range followed by sets
  /// replaces its content. No reader, no crash and no error ever shows a part of them.
  ///
  /// - Parameter changes: The changes; an empty batch is fine.
  /// - Throws: ``StoreError``: `invalidKey`, `encodingFailed` or `valueTooLarge` where any change cannot be made, with
  ///   nothing changed; `full`; `ioFailed`; `closed`. `CancellationError` where the task was cancelled before the write
  ///   started. ``StoreError/outcome`` tells whether the changes may have taken effect.
  func apply(_ changes: ChangeBatch<Value>) async throws

  /// Reads the values of some keys, lets a closure change them, and writes them back, as one step.
  ///
  /// No other writer of the store, in this process or, where the store can be shared, in another, comes between the
  /// reading and the writing.
  ///
  /// - Parameters:
  ///   - keys: The keys to read and write; no key may stand twice.
  ///   - body: Gets one slot for each key, in the order of `keys`, and leaves in it what is to be stored, or `nil` to
  ///     remove the key. It runs once; where a commit that is known to have had no effect is repeated, it runs again on
  ///     the current values and only its last run counts. It must not call the store, nor change the number of slots.
  /// - Returns: What `body` returned.
  /// - Throws: What `body` throws, unchanged, with nothing changed in the store. ``StoreError`` as ``apply(_:)``, and
  ///   `invalidArgument` where a key stands twice or the number of slots was changed.
  func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result

  /// Makes everything written before durable against power loss.
  ///
  /// It ignores cancellation. A store that keeps nothing beyond the process has nothing to do.
  ///
  /// - Throws: ``StoreError``: `closed`; `ioFailed`; `full`.
  func synchronize() async throws

  /// Waits for running operations, makes everything written durable, and gives up what the store holds.
  ///
  /// Closing again does nothing; every other operation afterwards throws ``StoreError/Code/closed``, in a cancelled task
  /// too; arguments that make no sense may be refused first. Closing a decorator closes its base. It ignores cancellation.
  ///
  /// - Throws: ``StoreError``: `ioFailed`; `full`. The store is closed all the same.
  func close() async throws
}
