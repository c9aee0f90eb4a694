import Larder
import LarderTesting
import TestSupport

/// The deliveries that the consumers of a queue have seen, with a check of the rules of leases.
///
/// Time moves only when no task can run, and no operation of the queues under test waits for time after it has leased
/// an item, so the time when a delivery returns is that of its lease.
struct DeliveryLog: Sendable {
  private struct Lease: Sendable {
    let receipt: DeliveryReceipt
    /// The end of the lease, or `nil` if its item was released, or is acknowledged.
    var end: Duration?
  }

  private var leases: [Int: Lease] = [:]
  private var acknowledged: Set<Int> = []
  private var attempts: [Int: Int] = [:]

  /// The items that were acknowledged.
  var finished: Set<Int> { acknowledged }

  /// Records a delivery.
  ///
  /// - Throws: ``Wrong`` if the item is acknowledged, or another consumer has its lease.
  mutating func deliver(_ delivery: QueueDelivery<Int>, lease: Duration, at now: Duration) throws {
    let item = delivery.value
    if acknowledged.contains(item) { throw Wrong("item \(item) was delivered after it was acknowledged") }
    if let end = leases[item]?.end, end > now { throw Wrong("item \(item) was delivered at \(now) beside a lease") }
    attempts[item, default: 0] += 1
    guard delivery.attempt == attempts[item] else {
      throw Wrong("delivery \(attempts[item] ?? 0) of item \(item) has the number \(delivery.attempt)")
    }
    leases[item] = Lease(receipt: delivery.receipt, end: now + lease)
  }

  /// Returns whether a receipt is valid now.
  func isValid(_ delivery: QueueDelivery<Int>, at now: Duration) -> Bool {
    guard let lease = leases[delivery.value], lease.receipt == delivery.receipt, let end = lease.end else {
      return false
    }
    return end > now
  }

  /// Records that a consumer is about to end its lease, because another one may get the item before the call returns.
  mutating func release(_ delivery: QueueDelivery<Int>) {
    guard leases[delivery.value]?.receipt == delivery.receipt else { return }
    leases[delivery.value]?.end = nil
  }

  mutating func acknowledge(_ delivery: QueueDelivery<Int>) {
    acknowledged.insert(delivery.value)
  }

  mutating func extend(_ delivery: QueueDelivery<Int>, lease: Duration, at now: Duration) {
    leases[delivery.value]?.end = now + lease
  }
}

extension Shared<DeliveryLog> {
  /// Acknowledges a delivery, and checks the answer.
  func acknowledge(_ delivery: QueueDelivery<Int>, in queue: some DurableQueue<Int>, _ clock: ManualClock) async throws
  {
    let isValid = value.isValid(delivery, at: clock.now.offset)
    if isValid { change { $0.acknowledge(delivery) } }
    try await check(isValid, delivery) { try await queue.acknowledge(delivery.receipt) }
  }

  /// Releases a delivery, and checks the answer.
  func release(
    _ delivery: QueueDelivery<Int>, after delay: Duration, in queue: some DurableQueue<Int>, _ clock: ManualClock
  ) async throws {
    let isValid = value.isValid(delivery, at: clock.now.offset)
    change { $0.release(delivery) }
    try await check(isValid, delivery) { try await queue.release(delivery.receipt, after: delay) }
  }

  /// Extends a lease, and checks the answer.
  func extend(
    _ delivery: QueueDelivery<Int>, lease: Duration, in queue: some DurableQueue<Int>, _ clock: ManualClock
  ) async throws {
    let now = clock.now.offset
    let isValid = value.isValid(delivery, at: now)
    if isValid { change { $0.extend(delivery, lease: lease, at: now) } }
    try await check(isValid, delivery) { try await queue.extend(delivery.receipt, lease: lease) }
  }

  private func check(
    _ isValid: Bool, _ delivery: QueueDelivery<Int>, _ body: () async throws -> Void
  ) async throws {
    do {
      try await body()
      guard isValid else { throw Wrong("a stale receipt of item \(delivery.value) was accepted") }
    } catch StoreError.Code.staleReceipt {
      guard !isValid else { throw Wrong("a valid receipt of item \(delivery.value) was refused") }
    }
  }
}
