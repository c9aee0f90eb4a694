/// A leased item that cannot be delivered.
public struct FailedDelivery: Error {
  /// The reason.
  public enum Reason: Sendable, Hashable {
    /// The item could not be read, but may be readable later.
    case unreadable
    /// The stored item is damaged.
    case damaged
    /// The codec failed to decode the item.
    case undecodable
    /// The program cannot decode any item, but another one may.
    ///
    /// The delivery does not count.
    case refused
    /// Your program lacks something to decode the item, such as a key.
    ///
    /// No delivery of the call counts, and the item comes after all others.
    case deferred
  }

  /// The number of deliveries after which an item that cannot be decoded becomes a dead letter, if deliveries are unlimited.
  ///
  /// More deliveries do not make an item decodable.
  public static var decodingLimit: Int { 5 }

  /// The receipt of the lease.
  public let receipt: DeliveryReceipt

  /// The reason.
  public var reason: Reason

  /// The error that a caller gets if no item of its call can be delivered.
  public let error: StoreError

  /// The delay until the item can be received again, unless it becomes a dead letter.
  ///
  /// The loop sets it.
  public var delay = Duration.zero

  /// Creates the failure of an item.
  ///
  /// - Parameters:
  ///   - receipt: The receipt of the lease.
  ///   - reason: The reason.
  ///   - error: The error that a caller gets if no item of its call can be delivered.
  public init(receipt: DeliveryReceipt, reason: Reason, error: StoreError) {
    self.receipt = receipt
    self.reason = reason
    self.error = error
  }
}

/// The items of one lease, decoded.
public struct LeasedDeliveries<Element: Sendable>: Sendable {
  /// The items in the order of delivery.
  public var readings: [Result<QueueDelivery<Element>, FailedDelivery>]

  /// A Boolean value that indicates whether another lease may find more items.
  public var hasMore: Bool

  /// Creates the items of a lease.
  ///
  /// - Parameters:
  ///   - readings: The items in the order of delivery. Defaults to an empty list.
  ///   - hasMore: A Boolean value that indicates whether another lease may find more items. Defaults to `false`.
  public init(readings: [Result<QueueDelivery<Element>, FailedDelivery>] = [], hasMore: Bool = false) {
    self.readings = readings
    self.hasMore = hasMore
  }
}

/// The loop that receives the items of a queue, for authors of a ``DurableQueue``.
///
/// Leases are written before their items are decoded, so an item that crashes the process counts as delivered. A queue
/// gives the loop the three steps that are its own. The loop has the rules that all queues of Larder share: a bad item
/// becomes a dead letter after its last delivery, a program that cannot decode any item makes no dead letters, and an item
/// for which your program lacks a key comes after all others.
///
/// ```swift
/// public func receive(max: Int, lease: Duration) async throws -> [QueueDelivery<Element>] {
///   try information.check(lease: lease, for: .receive)
///   try information.check(maximumDeliveries: max)
///   return try await operations.run(.receive, of: information) { try await loop.receiveDue(max, lease) }
/// }
///
/// private var loop: ReceiveLoop<Element> {
///   ReceiveLoop(
///     decodingRecord: decodingRecord, retrying: retrying, lease: leaseFirst, release: releaseLeases, endLeases: endLeases)
/// }
/// ```
public struct ReceiveLoop<Element: Sendable>: Sendable {
  /// Leases the first items that are due, and reads and decodes them.
  ///
  /// - Parameters:
  ///   - wanted: The maximum number of items. The queue may lease fewer at a time.
  ///   - duration: The duration of the leases.
  ///   - mayBeSuspect: A Boolean value that indicates whether an item may be returned that must be received alone. If
  ///     not, it also ends the lease.
  ///   - isFirst: A Boolean value that indicates whether the call has leased nothing yet. If not, the lease may ignore
  ///     cancellation, and takes no items that your program lacks something to decode.
  /// - Returns: The items in the order of delivery.
  /// - Throws: ``StoreError`` if the leases could not be written, or no item could be read for a reason that concerns none
  ///   of them; `CancellationError`.
  public typealias Lease =
    @Sendable (_ wanted: Int, _ duration: Duration, _ mayBeSuspect: Bool, _ isFirst: Bool) async throws
    -> LeasedDeliveries<Element>

  /// Releases items; see ``DurableQueue/release(_:after:countsAsAttempt:)-([DeliveryReceipt],_,_)``.
  ///
  /// The step runs also if the queue is closing, because the call has begun before.
  ///
  /// - Parameters:
  ///   - receipts: The receipts.
  ///   - delay: The delay until the items can be received again; `nil` for that of the retry policy.
  ///   - countsAsAttempt: A Boolean value that indicates whether the delivery counts.
  /// - Returns: The receipts that were stale.
  /// - Throws: ``StoreError``.
  public typealias Release =
    @Sendable (_ receipts: [DeliveryReceipt], _ delay: Duration?, _ countsAsAttempt: Bool) async throws
    -> [DeliveryReceipt]

  /// Ends the leases of items that cannot be delivered, and ignores stale receipts.
  ///
  /// A damaged item becomes a dead letter, and one that cannot be decoded does after its last delivery.
  ///
  /// - Parameter failures: The items, with the delays until they can be received again.
  /// - Throws: ``StoreError``.
  public typealias EndLeases = @Sendable (_ failures: [FailedDelivery]) async throws -> Void

  private let decodingRecord: DecodingRecord
  private let retrying: RetryDelays
  private let lease: Lease
  private let release: Release
  private let endLeases: EndLeases

  /// Creates a loop from the steps of a queue.
  ///
  /// - Parameters:
  ///   - decodingRecord: The record of whether this process has decoded items, one for each open queue.
  ///   - retrying: The delays of items that cannot be decoded, by the retry policy of the queue.
  ///   - lease: The step that leases, reads and decodes items.
  ///   - release: The step that releases items.
  ///   - endLeases: The step that ends the leases of items that cannot be delivered.
  public init(
    decodingRecord: DecodingRecord, retrying: RetryDelays, lease: @escaping Lease, release: @escaping Release,
    endLeases: @escaping EndLeases
  ) {
    self.decodingRecord = decodingRecord
    self.retrying = retrying
    self.lease = lease
    self.release = release
    self.endLeases = endLeases
  }

  /// The most items that cannot be delivered in one call.
  private var failureLimit: Int { 1000 }

  /// Leases items until there are as many as wanted or the queue finds no more; see ``DurableQueue/receive(max:lease:)``.
  ///
  /// - Parameters:
  ///   - max: The maximum number of items, at least 1.
  ///   - lease: The duration of the leases. It must be greater than zero.
  /// - Returns: The items in the order of delivery, or an empty array if no item is due.
  /// - Throws: The errors of the steps; the error of the first item that cannot be decoded, if no item can be
  ///   delivered and the failure may concern the program.
  public func receiveDue(_ max: Int, _ lease: Duration) async throws -> [QueueDelivery<Element>] {
    var deliveries: [QueueDelivery<Element>] = []
    var failures: [FailedDelivery] = []
    while deliveries.count < max, failures.count < failureLimit {
      let leased: LeasedDeliveries<Element>
      do {
        let isFirst = deliveries.isEmpty && failures.isEmpty
        leased = try await self.lease(max - deliveries.count, lease, deliveries.isEmpty, isFirst)
      } catch  where !deliveries.isEmpty {
        // The next call reports the error.
        break
      } catch {
        try await afterLease { try await withdraw(failures, lease) }
        throw error
      }
      for reading in leased.readings {
        decodingRecord.note(reading)
        switch reading {
        case .success(let delivery): deliveries.append(delivery)
        case .failure(let failure): failures.append(failure)
        }
      }
      if let failure = failures.first(where: { $0.reason == .deferred }) {
        let receipts = deliveries.map(\.receipt) + failures.map(\.receipt)
        try await afterLease { _ = try await release(receipts, .zero, false) }
        throw failure.error
      }
      let undecodableCount = failures.count { $0.reason == .undecodable }
      if undecodableCount >= DecodingRecord.failureLimit, !decodingRecord.hasDecoded { break }
      // Such an item is received alone.
      if deliveries.last?.isSuspect == true { break }
      // After a failure, a lease of fewer items than wanted is no reason to stop.
      if !leased.hasMore, failures.isEmpty || leased.readings.isEmpty { break }
    }
    let refusals: [FailedDelivery]
    do {
      refusals = try await afterLease { try await withdraw(failures, lease) }
    } catch  where !deliveries.isEmpty {
      // The leases of the failures end by themselves.
      return deliveries
    }
    if let first = refusals.first, deliveries.isEmpty { throw first.error }
    return deliveries
  }

  /// Returns the result of a leased item for a consumer that waited; see ``DurableQueue/nextDelivery(lease:)``.
  ///
  /// - Parameters:
  ///   - reading: The item, or its failure.
  ///   - lease: The duration of the lease.
  /// - Returns: The item, or the error of an item that cannot be delivered.
  /// - Throws: The errors of the steps; the error of the item if your program lacks something to decode it, or has
  ///   failed to decode several and has never decoded one.
  public func result(
    of reading: Result<QueueDelivery<Element>, FailedDelivery>, _ lease: Duration
  ) async throws -> Result<QueueDelivery<Element>, StoreError> {
    decodingRecord.note(reading)
    switch reading {
    case .success(let delivery): return .success(delivery)
    case .failure(let failure) where failure.reason == .deferred:
      try await afterLease { _ = try await release([failure.receipt], .zero, false) }
      throw failure.error
    case .failure(let failure):
      let mustStop = failure.reason == .undecodable && decodingRecord.noteFailure()
      try await afterLease { try await withdraw([failure], lease) }
      if mustStop { throw failure.error }
      return .failure(failure.error)
    }
  }

  /// Runs a step that ends leases.
  ///
  /// - Throws: The error of the step. Its outcome is unknown, because the leases may hide the items until they end.
  @discardableResult
  private func afterLease<Ended>(_ step: () async throws -> Ended) async throws -> Ended {
    do {
      return try await step()
    } catch let error as StoreError {
      var error = error
      error.outcome = .unknown
      throw error
    }
  }

  /// Ends the leases of items that cannot be delivered.
  ///
  /// - Returns: The failures that concern the program or the disk, not the items.
  @discardableResult
  private func withdraw(_ failures: [FailedDelivery], _ lease: Duration) async throws -> [FailedDelivery] {
    guard !failures.isEmpty else { return [] }
    let hasDecoded = decodingRecord.hasDecoded
    let failures = failures.map { failure in
      var failure = failure
      failure.delay = lease
      if failure.reason == .undecodable {
        failure.delay = retrying.delay(afterAttempt: failure.receipt.attempt)
        if !hasDecoded {
          failure.reason = .refused
          // Even if the retry policy has no delay, or the item would block other items.
          failure.delay = max(failure.delay, min(lease, .seconds(1)))
        }
      }
      return failure
    }
    try await endLeases(failures)
    return failures.filter { $0.reason == .refused || $0.reason == .unreadable }
  }
}
