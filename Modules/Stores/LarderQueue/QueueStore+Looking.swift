public import Larder

/// Peeking and counting.
extension QueueStore {
  /// Reads the items that would be received first, without leasing them.
  ///
  /// - Parameter max: The most items; defaults to 1.
  /// - Returns: The items with their keys, in order of arrival.
  /// - Throws: ``StoreError``: `invalidArgument` if `max` is negative; `corrupted` if an item cannot be decoded;
  ///   `closed`; `ioFailed`.
  @concurrent
  public func peek(max: Int = 1) async throws -> [StoreEntry<Element>] {
    try information.check(limit: max, for: .peek)
    return try await read(.peek) { ledger in
      ledger.firstDeliverable(max)
    }
  }

  /// Counts the items in each state.
  ///
  /// - Throws: ``StoreError``: `closed`.
  public func counts() async throws -> QueueCounts {
    try await look(.count) { $0.ledger.counts }
  }

  /// How long ago the oldest item came that is not acknowledged, a dead letter aside.
  ///
  /// - Returns: The age by the clock on the wall; `nil` if there is no item.
  /// - Throws: ``StoreError``: `closed`.
  public func oldestAge() async throws -> Duration? {
    // Not `nil` itself, with which a call says that it waits.
    let age = try await look(.count) { core -> Duration in
      guard let arrival = core.ledger.oldestArrival else { return .seconds(-1) }
      let (age, overflows) = core.ledger.now.subtractingReportingOverflow(arrival)
      return .microseconds(overflows ? .max : Swift.max(age, 0))
    }
    return age < .zero ? nil : age
  }
}
