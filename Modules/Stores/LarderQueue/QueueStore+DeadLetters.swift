public import Larder

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reading, requeuing and purging dead letters.
extension QueueStore {
  /// Reads the dead letters.
  ///
  /// ```swift
  /// var page = try await queue.deadLetters(limit: 100)
  /// while let last = page.last {
  ///   …
  ///   page = try await queue.deadLetters(limit: 100, after: last.sequence)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - limit: The most to read; defaults to all.
  ///   - sequence: Only those whose ``DeadLetter/sequence`` is greater; defaults to all.
  /// - Returns: The dead letters in order of arrival.
  /// - Throws: ``StoreError``: `invalidArgument` if the limit is negative; `closed`; `ioFailed`.
  @concurrent
  public func deadLetters(limit: Int = .max, after sequence: UInt64 = 0) async throws -> [DeadLetter<Element>] {
    try information.check(limit: limit, for: .deadLetters)
    return try await running(.deadLetters) {
      try await engine.readablePayloads(.deadLetters, of: \.item) { core in
        core.ledger.deadLetters(limit, after: sequence)
      }.map(deadLetter)
    }
  }

  private func deadLetter(
    _ state: ItemState, _ payload: Result<ArraySlice<UInt8>?, StoreError>
  ) -> DeadLetter<Element> {
    let item = state.item
    return DeadLetter(
      key: item.key, sequence: item.sequence, attempts: Int(item.attempts),
      reason: state.death?.reason ?? .undecodable, date: Date(microseconds: state.death?.time ?? 0),
      value: coder.result(of: payload, forKey: item.key, during: .deadLetters))
  }

  /// Puts dead letters at the end of the queue, as if they came now and had never been delivered.
  ///
  /// Of several with the same key the latest is taken.
  ///
  /// - Parameter keys: Their keys; one that no dead letter has is left out.
  /// - Returns: How many there were.
  /// - Throws: ``StoreError``: `conflict` if an item with the key is in the queue, and `full` if the disk is full,
  ///   with nothing changed; `invalidKey`; `closed`; `ioFailed`. `CancellationError`.
  @discardableResult
  public func requeue(_ keys: [StoreKey]) async throws -> Int {
    try information.check(keys, for: .requeue)
    return try await running(.requeue) {
      try await engine.perform(.requeue, .writes, needsRoom: true) { core in
        var count = 0
        for key in keys {
          let isDone = try core.change { ledger, records throws(QueueRefusal) in
            try ledger.requeue(key, into: &records)
          }
          if isDone { count += 1 }
        }
        return count
      }
    }
  }

  /// Puts every dead letter at the end of the queue, as if they came now, in their order of arrival.
  ///
  /// Those whose key an item in the queue has stay dead letters. Where it fails halfway, some have come back.
  ///
  /// - Returns: How many came back.
  /// - Throws: ``StoreError``: `full` if the disk is full; `closed`; `ioFailed`. `CancellationError`.
  @discardableResult
  public func requeueDeadLetters() async throws -> Int {
    try await running(.requeue) {
      // Not those that die meanwhile.
      let last = try await engine.perform(.requeue, .looks) { $0.ledger.nextSequence }
      var count = 0
      var next: UInt64? = 1
      while let first = next, first < last {
        let part = try await engine.perform(.requeue, .writes, needsRoom: true) { core in
          try core.change { ledger, records throws(QueueRefusal) in
            try ledger.requeueAll(1000, in: first...(last - 1), into: &records)
          }
        }
        count += part.count
        next = part.last.map { $0 + 1 }
      }
      return count
    }
  }

  /// Removes the dead letters of some keys for good.
  ///
  /// - Parameter keys: Their keys; one that no dead letter has is left out.
  /// - Returns: How many dead letters there were.
  /// - Throws: ``StoreError``: `invalidKey`; `closed`; `full`; `ioFailed`. `CancellationError`.
  @discardableResult
  public func purgeDeadLetters(_ keys: [StoreKey]) async throws -> Int {
    try information.check(keys, for: .purgeDeadLetters)
    return try await running(.purgeDeadLetters) {
      try await engine.perform(.purgeDeadLetters, .writes) { core in
        try core.change { ledger, records in
          keys.reduce(0) { $0 + ledger.purgeDeadLetters($1, into: &records) }
        }
      }
    }
  }

  /// Removes every dead letter for good.
  ///
  /// - Returns: How many there were.
  /// - Throws: ``StoreError``: `closed`; `full`; `ioFailed`. `CancellationError`.
  @discardableResult
  public func purgeDeadLetters() async throws -> Int {
    try await running(.purgeDeadLetters) {
      try await engine.perform(.purgeDeadLetters, .writes) { core in
        try core.change { ledger, records in ledger.purgeDeadLetters(into: &records) }
      }
    }
  }
}
