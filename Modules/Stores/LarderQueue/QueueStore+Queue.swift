public import Larder

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What makes a queue of the store.
extension QueueStore {
  // MARK: Enqueuing

  /// Puts an item at the end of the queue.
  ///
  /// With an id it can be repeated: while an item with that id is in the queue, dead letters included, and for
  /// ``QueueConfiguration/duplicateWindow`` after it was acknowledged, it does nothing.
  ///
  /// - Parameters:
  ///   - element: The item.
  ///   - id: The key under which it is kept; a generated one unless given.
  ///   - delay: How long it is kept back; not at all unless given.
  /// - Returns: What became of it.
  /// - Throws: ``StoreError``: `full` where there is no room and the policy is not to wait; `invalidKey`;
  ///   `invalidArgument` where the delay is negative; `encodingFailed`; `valueTooLarge`; `closed`; `ioFailed`.
  ///   `CancellationError` where the task was cancelled before it began, or while it waited for room.
  @discardableResult
  public func enqueue(
    _ element: Element, id: StoreKey? = nil, delay: Duration = .zero
  ) async throws -> EnqueuedItem {
    let length = try microseconds(ofDelay: delay, for: .enqueue)
    if let id { try information.check(id, for: .enqueue) }
    return try await running(.enqueue) {
      let payload = try coder.payload(of: element, forKey: id, during: .enqueue)
      return try await engine.perform(.enqueue, .writes, waitsForRoom: true) { core in
        try core.enqueue(payload, key: id, delay: length)
      }
    }
  }

  /// Puts items at the end of the queue, in order, all or none of them.
  ///
  /// - Parameter inputs: The items, each with an id and a delay where it has them.
  /// - Returns: What became of each, in order.
  /// - Throws: As ``enqueue(_:id:delay:)``.
  @discardableResult
  public func enqueue(_ inputs: [QueueInput<Element>]) async throws -> [EnqueuedItem] {
    let delays = try inputs.map { try microseconds(ofDelay: $0.delay, for: .enqueue) }
    try information.check(inputs.compactMap(\.id), for: .enqueue)
    return try await running(.enqueue) {
      let payloads = try inputs.map { try coder.payload(of: $0.value, forKey: $0.id, during: .enqueue) }
      let ids = inputs.map(\.id)
      return try await engine.perform(.enqueue, .writes, waitsForRoom: true) { core in
        try core.ledger.checkFit(zip(ids, payloads).map { (key: $0, bytes: $1.count) })
        var enqueued: [EnqueuedItem] = []
        enqueued.reserveCapacity(ids.count)
        for (index, id) in ids.enumerated() {
          enqueued.append(try core.enqueue(payloads[index], key: id, delay: delays[index]))
        }
        return enqueued
      }
    }
  }

  // MARK: Receiving

  /// Hands out the items that came first of those that wait, and leases them.
  ///
  /// It does not wait for items: ``deliveries(lease:)`` and ``withNext(lease:_:)`` do. An item that cannot be decoded becomes
  /// a dead letter in the same commit, as does one that was delivered too often, and does not count.
  ///
  /// - Parameters:
  ///   - max: The most items, at least 1; 1 unless given.
  ///   - lease: How long nobody else gets them; more than nothing.
  /// - Returns: The items, in order of arrival; none where none is due.
  /// - Throws: ``StoreError``: `invalidArgument`; `closed`; `full` or `ioFailed` where the leases could not be written, or
  ///   where no item could be read. `CancellationError` where the task was cancelled before it began.
  public func receive(max: Int = 1, lease: Duration) async throws -> [Delivery<Element>] {
    let length = try microseconds(ofLease: lease, for: .receive)
    guard max > 0 else {
      throw StoreError(
        .invalidArgument, during: .receive, store: information.name, message: "there is nothing to receive \(max) of")
    }
    let coder = coder
    return try await running(.receive) {
      let results = try await engine.perform(.receive, .blocks) { core in
        try core.receive(max, length: length, coder)
      }
      var deliveries: [Delivery<Element>] = []
      var failure: StoreError?
      for result in results {
        switch result {
        case .success(let delivery): deliveries.append(delivery)
        case .failure(let error): if error.code == .ioFailed { failure = failure ?? error }
        }
      }
      if let failure, deliveries.isEmpty { throw failure }
      return deliveries
    }
  }

  /// Waits for an item, and does something with it, which acknowledges it.
  ///
  /// When `body` returns, the item is acknowledged; when it throws, as it should where its task is cancelled, the item is
  /// released; where even that fails, it waits until the lease ends. A `body` that takes longer than the lease has to
  /// extend it.
  ///
  /// - Parameters:
  ///   - lease: How long nobody else gets the item; more than nothing.
  ///   - body: Gets the item with its key and receipt.
  /// - Returns: What `body` returns.
  /// - Throws: What `body` throws. ``StoreError``: `staleReceipt` where the lease ended before `body` returned, so that the
  ///   item will be delivered again; as ``receive(max:lease:)`` and ``acknowledge(_:)-(DeliveryReceipt)``.
  ///   `CancellationError` where the task was cancelled while it waited for an item.
  public func withNext<Result>(
    lease: Duration, _ body: (Delivery<Element>) async throws -> Result
  ) async throws -> Result {
    let delivery = try await nextGood(lease: lease)
    let result: Result
    do {
      result = try await body(delivery)
    } catch {
      do {
        try await release(delivery.receipt)
      } catch {
        // Either way the item is delivered again, at the latest when its lease ends; what `body` threw says more.
      }
      throw error
    }
    try await acknowledge(delivery.receipt)
    return result
  }

  private func nextGood(lease: Duration) async throws -> Delivery<Element> {
    while true {
      if case .success(let delivery) = try await next(lease: lease) { return delivery }
    }
  }

  /// Waits for an item, and leases it.
  func next(lease: Duration) async throws -> Result<Delivery<Element>, StoreError> {
    let length = try microseconds(ofLease: lease, for: .receive)
    let coder = coder
    return try await running(.receive) {
      try await engine.perform(.receive, .blocks) { core in
        try core.receive(1, length: length, coder, stopsAtFailure: true).first
      }
    }
  }

  /// The items as they become due, one after another, each leased when it is asked for.
  ///
  /// ```swift
  /// for try await result in queue.deliveries(lease: .seconds(30)) {
  ///   switch result {
  ///   case .success(let delivery):
  ///     try await handle(delivery.value)
  ///     try await queue.acknowledge(delivery.receipt)
  ///   case .failure(let error):
  ///     log(error)
  ///   }
  /// }
  /// ```
  ///
  /// An item that cannot be decoded is an element too, with its error, and by then a dead letter. The sequence ends when
  /// the queue is closed. Where no item is due it waits, without polling; several consumers share the items.
  ///
  /// - Parameter lease: How long nobody else gets an item; more than nothing.
  public func deliveries(lease: Duration) -> Deliveries<Element> {
    Deliveries(queue: self, lease: lease)
  }

  // MARK: Receipts

  /// Lets an item go for good.
  ///
  /// It ignores cancellation.
  ///
  /// - Parameter receipt: That of its delivery.
  /// - Throws: ``StoreError``: `staleReceipt`; `closed`; `full`; `ioFailed`.
  public func acknowledge(_ receipt: DeliveryReceipt) async throws {
    _ = try await change(.acknowledge) { core in
      try core.change { ledger, records throws(QueueRefusal) in try ledger.acknowledge(receipt, into: &records) }
      return true
    }
  }

  /// Lets items go for good, in one commit.
  ///
  /// It ignores cancellation.
  ///
  /// - Parameter receipts: Those of their deliveries.
  /// - Returns: The receipts that are stale; the items of all others have gone.
  /// - Throws: ``StoreError``: `closed`; `full`; `ioFailed`.
  public func acknowledge(_ receipts: [DeliveryReceipt]) async throws -> [DeliveryReceipt] {
    try await change(.acknowledge) { core in
      core.staleReceipts(of: receipts) { receipt, ledger, records throws(QueueRefusal) in
        try ledger.acknowledge(receipt, into: &records)
      }
    }
  }

  /// Lets an item be delivered again, at its old place in the order of arrival.
  ///
  /// An item that was delivered ``QueueConfiguration/maximumDeliveries`` times becomes a dead letter. It ignores
  /// cancellation.
  ///
  /// - Parameters:
  ///   - receipt: That of its delivery.
  ///   - delay: How long it is kept back; not at all unless given.
  /// - Throws: ``StoreError``: `staleReceipt`; `invalidArgument` where the delay is negative; `closed`; `full`; `ioFailed`.
  public func release(_ receipt: DeliveryReceipt, delay: Duration = .zero) async throws {
    let length = try microseconds(ofDelay: delay, for: .release)
    _ = try await change(.release) { core in
      try core.change { ledger, records throws(QueueRefusal) in
        try ledger.release(receipt, delay: length, into: &records)
      }
      return true
    }
  }

  /// Lets items be delivered again, in one commit; see ``release(_:delay:)-(DeliveryReceipt,_)``.
  ///
  /// - Parameters:
  ///   - receipts: Those of their deliveries.
  ///   - delay: How long they are kept back; not at all unless given.
  /// - Returns: The receipts that are stale; the items of all others are released.
  /// - Throws: ``StoreError``: `invalidArgument` where the delay is negative; `closed`; `full`; `ioFailed`.
  public func release(_ receipts: [DeliveryReceipt], delay: Duration = .zero) async throws -> [DeliveryReceipt] {
    let length = try microseconds(ofDelay: delay, for: .release)
    return try await change(.release) { core in
      core.staleReceipts(of: receipts) { receipt, ledger, records throws(QueueRefusal) in
        try ledger.release(receipt, delay: length, into: &records)
      }
    }
  }

  /// Lets a lease end so much after now, whenever it would have ended.
  ///
  /// It ignores cancellation.
  ///
  /// - Parameters:
  ///   - receipt: That of the delivery; it stays good.
  ///   - lease: How long from now on; more than nothing.
  /// - Throws: ``StoreError``: `staleReceipt`; `invalidArgument`; `closed`; `full`; `ioFailed`.
  public func extend(_ receipt: DeliveryReceipt, lease: Duration) async throws {
    let length = try microseconds(ofLease: lease, for: .extend)
    _ = try await change(.extend) { core in
      try core.change { ledger, records throws(QueueRefusal) in
        try ledger.extend(receipt, length: length, into: &records)
      }
      return true
    }
  }

  /// Lets leases end so much after now, in one commit; see ``extend(_:lease:)-(DeliveryReceipt,_)``.
  ///
  /// - Parameters:
  ///   - receipts: Those of the deliveries.
  ///   - lease: How long from now on; more than nothing.
  /// - Returns: The receipts that are stale; the leases of all others are extended.
  /// - Throws: ``StoreError``: `invalidArgument`; `closed`; `full`; `ioFailed`.
  public func extend(_ receipts: [DeliveryReceipt], lease: Duration) async throws -> [DeliveryReceipt] {
    let length = try microseconds(ofLease: lease, for: .extend)
    return try await change(.extend) { core in
      core.staleReceipts(of: receipts) { receipt, ledger, records throws(QueueRefusal) in
        try ledger.extend(receipt, length: length, into: &records)
      }
    }
  }

  private func change<Result: Sendable>(
    _ operation: StoreOperation, _ body: @escaping @Sendable (inout QueueCore) throws -> Result
  ) async throws -> Result {
    try await running(operation) {
      try await engine.perform(operation, .writes, ignoresCancellation: true) { try body(&$0) }
    }
  }

  // MARK: Looking

  /// Reads the items that would be received first, without leasing them.
  ///
  /// - Parameter max: The most items; 1 unless given.
  /// - Returns: The items with their keys, in order of arrival.
  /// - Throws: ``StoreError``: `invalidArgument` where `max` is negative; `corrupted` where an item cannot be decoded;
  ///   `closed`; `ioFailed`.
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
  /// - Returns: The age by the clock on the wall; `nil` where there is no item.
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

  // MARK: Dead letters

  /// Reads the dead letters.
  ///
  /// - Parameter limit: The most to read; all of them unless given.
  /// - Returns: The dead letters in order of arrival.
  /// - Throws: ``StoreError``: `invalidArgument` where the limit is negative; `closed`; `ioFailed`.
  public func deadLetters(limit: Int = .max) async throws -> [DeadLetter<Element>] {
    try information.check(limit: limit, for: .deadLetters)
    return try await running(.deadLetters) {
      try await engine.payloads(.deadLetters, of: \.item) { core in core.ledger.deadLetters(limit) }.map(deadLetter)
    }
  }

  private func deadLetter(_ state: ItemState, _ payload: ArraySlice<UInt8>?) -> DeadLetter<Element> {
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
  /// - Throws: ``StoreError``: `conflict` where an item with the key is in the queue, and `full` where there is no room,
  ///   with nothing changed; `invalidKey`; `closed`; `ioFailed`. `CancellationError`.
  @discardableResult
  public func requeue(_ keys: [StoreKey]) async throws -> Int {
    try information.check(keys, for: .requeue)
    return try await running(.requeue) {
      try await engine.perform(.requeue, .writes) { core in
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

  // MARK: Arguments

  private func microseconds(ofDelay delay: Duration, for operation: StoreOperation) throws -> Int64 {
    guard delay >= .zero else {
      throw StoreError(
        .invalidArgument, during: operation, store: information.name, message: "the delay \(delay) is negative")
    }
    return delay.microseconds
  }

  private func microseconds(ofLease lease: Duration, for operation: StoreOperation) throws -> Int64 {
    guard lease > .zero else {
      throw StoreError(
        .invalidArgument, during: operation, store: information.name, message: "a lease of \(lease) makes no sense")
    }
    return lease.microseconds
  }
}
