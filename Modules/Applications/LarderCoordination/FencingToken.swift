public import Larder

/// The proof that a caller holds a lock, which a write checks in its own commit.
///
/// Each term of a lock has a greater number than all earlier ones. A holder that was suspended, or whose clock was wrong,
/// may believe that it still holds the lock; its writes are refused, because the stored term no longer names its token:
///
/// ```swift
/// try await bytes.transaction { tx in
///   try await tx.require(token)
///   try await tx.setValue(report, forKey: "latest", in: reports)
///   return .commit(())
/// }
/// ```
///
/// Pass ``number`` on to a system outside of the store. That system must refuse a smaller number than the greatest one
/// it has seen.
public struct FencingToken: Sendable, Hashable {
  /// The name of the lock.
  public let name: StoreKey

  /// The number of the term, from 1 on.
  public let number: UInt64

  /// The key of the term's record in the store of the lock.
  let key: StoreKey

  let term: LockTerm

  init(name: StoreKey, key: StoreKey, term: LockTerm) {
    self.name = name
    self.key = key
    self.term = term
    number = term.number
  }

  /// Throws unless a record names the token.
  func check(_ record: [UInt8]?, during operation: StoreOperation, of information: StoreInformation) throws {
    // The record has the random number of the holder, so no other lock or store has the same one.
    guard record != term.record else { return }
    throw StoreError.lockLost(during: operation, of: information)
  }
}

extension StoreTransaction {
  /// Ends the transaction with an error unless a lock is still held, and commits only if it is held at the commit.
  ///
  /// The lock must be in the store of the transaction. A renewal of the lock does not make the transaction run again.
  ///
  /// - Parameter token: The token of the lock.
  /// - Throws: `StoreError` with `lockLost` if the lock was released, lost or removed; the errors of a read.
  public func require(_ token: FencingToken) async throws {
    // As it is stored, so that a write of the same transaction cannot replace it.
    let record = try await storedValues(forKeys: [token.key])[0]
    try token.check(record, during: .transaction, of: base.information)
  }
}

extension StoreError.Code {
  /// The lock was released, lost or removed, so that the write or the work of its holder is refused.
  public static let lockLost = StoreError.Code(rawValue: "lockLost")
}

extension StoreOperation {
  /// Waiting for, renewing and releasing a ``StoreLock``.
  public static let lock = StoreOperation(rawValue: "lock")
}

extension StoreError {
  static func lockLost(
    during operation: StoreOperation, of information: StoreInformation, underlying: (any Error)? = nil
  ) -> StoreError {
    StoreError(
      .lockLost, during: operation, store: information.name,
      message: "the lock was released, lost or removed, and another caller may hold it", underlying: underlying)
  }
}
