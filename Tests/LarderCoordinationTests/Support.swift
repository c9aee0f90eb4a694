import Larder
import LarderTesting
import TestSupport

@testable import LarderCoordination

/// A store that counts its commits, and can stop working for one program.
final class CountedStore<Base: DataStore>: PassingStore {
  let base: Base
  private let count = Locked(0)
  private let started = Locked(0)
  private let failure = Locked<StoreError.Code?>(nil)
  private let afterCommit = Locked<(@Sendable () async throws -> Void)?>(nil)

  init(_ base: Base) {
    self.base = base
  }

  /// The number of updates and batches that were committed.
  var commits: Int { count.withLock { $0 } }

  /// The number of updates that were begun.
  var updates: Int { started.withLock { $0 } }

  /// Runs a closure after the next commit of an update and before its caller gets the result.
  func afterNextCommit(_ body: @escaping @Sendable () async throws -> Void) {
    afterCommit.withLock { $0 = body }
  }

  /// Reports an error for the next commit of an update, so that its outcome is unknown.
  func failAfterNextCommit(isRetryable: Bool) {
    afterNextCommit {
      throw StoreError(.ioFailed, during: .update, message: "the answer got lost", isRetryable: isRetryable)
    }
  }

  /// The code of the error that each following operation throws, or `nil`.
  func fail(with code: StoreError.Code?) {
    failure.withLock { $0 = code }
  }

  func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    if let code = failure.withLock({ $0 }) {
      throw StoreError(code, during: operation, message: "the store is cut off", isRetryable: true)
    }
    return try await body()
  }

  func apply(_ changes: ChangeBatch<Base.Value>) async throws {
    try await forward(.apply, of: nil) { try await base.apply(changes) }
    count.withLock { $0 += 1 }
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Base.Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    started.withLock { $0 += 1 }
    let (result, isCommitted) = try await forward(.update, of: nil) {
      try await base.update(deciding: keys) { slots in
        let decision = body(&slots)
        return decision.map { ($0, decision.isCommit) }
      }
    }
    if isCommitted {
      count.withLock { $0 += 1 }
      try await afterCommit.withLock { body in
        defer { body = nil }
        return body
      }?()
    }
    return result
  }
}

extension StoreLock {
  /// The locks of a test, with a lease of 3 seconds that are looked at each second.
  convenience init(testing base: some DataStore<[UInt8]>, _ clock: ManualClock) throws {
    try self.init(
      base, prefix: "locks/", configuration: StoreLockConfiguration(lease: .seconds(3), pollInterval: .seconds(1)),
      clock: clock)
  }
}

/// Numbers that tasks note, in order.
final class Notes: Sendable {
  private let numbers = Locked<[Int]>([])

  func append(_ number: Int) {
    numbers.withLock { $0.append(number) }
  }

  var all: [Int] { numbers.withLock { $0 } }
}
