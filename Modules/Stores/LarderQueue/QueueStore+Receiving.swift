import Larder
import LarderFiles

/// How items are handed out.
extension QueueStore {
  /// An item that was leased and read: a delivery, or the reason why it is none.
  enum Reading: Sendable {
    case good(Delivery<Element>)
    case bad(DeliveryReceipt, DeliveryFailure, StoreError)
  }

  /// More items that cannot be decoded than this are not met in one call.
  private static var failureLimit: Int { 100 }

  /// Hands out the items that came first of those that wait, and leases them.
  ///
  /// It does not wait for items: ``deliveries(lease:)`` and ``withNext(lease:extending:_:)`` do. The lease is written before
  /// an item is decoded, so one that takes the process with it counts as delivered. One that cannot be decoded is given
  /// back as ``QueueConfiguration/retryPolicy`` says, and becomes a dead letter when it has used up its deliveries. One that
  /// may have killed the process before comes alone, though there are others.
  ///
  /// As long as no item was decoded since the queue was opened, that one cannot be says more about the program: then three
  /// that cannot are kept back as if they had not been delivered, and the error is thrown.
  ///
  /// - Parameters:
  ///   - max: The most items, at least 1; defaults to 1.
  ///   - lease: How long the items are leased; must be greater than zero.
  /// - Returns: The items, in order of arrival; none where none is due, or where the disk is so full that what is left is for
  ///   the items that are leased already.
  /// - Throws: ``StoreError``: `invalidArgument`; `closed`; `corrupted` if no item can be decoded; `full` or `ioFailed`
  ///   where the leases could not be written, or where no item could be read. `CancellationError` if the task was
  ///   cancelled before it began.
  public func receive(max: Int = 1, lease: Duration) async throws -> [Delivery<Element>] {
    let length = try microseconds(ofLease: lease, for: .receive)
    guard max > 0 else {
      throw StoreError(
        .invalidArgument, during: .receive, store: information.name, message: "`max` must be at least 1, not \(max)")
    }
    return try await running(.receive) {
      var deliveries: [Delivery<Element>] = []
      var failures: [(receipt: DeliveryReceipt, error: StoreError)] = []
      var unreadable: StoreError?
      while deliveries.count < max, failures.count < QueueStore.failureLimit {
        let wanted = max - deliveries.count
        let mayBeSuspect = deliveries.isEmpty
        let hasAny = !deliveries.isEmpty || !failures.isEmpty
        let leased: [LeasedItem]
        let readings: [Reading]
        do {
          // What was handed out already is not forgotten where the task is cancelled meanwhile.
          let part = try await engine.perform(.receive, .writes, ignoresCancellation: hasAny) { core in
            try core.lease(wanted, length: length, mayBeSuspect: mayBeSuspect)
          }
          if part.items.isEmpty, part.goesOn { continue }
          guard !part.items.isEmpty else { break }
          leased = part.items
          readings = try await read(leased)
        } catch  where !deliveries.isEmpty {
          // The next call tells of it.
          break
        }
        for reading in readings {
          switch reading {
          case .good(let delivery): deliveries.append(delivery)
          case .bad(let receipt, .undecodable, let error):
            failures.append((receipt, error))
          case .bad(let receipt, let failure, let error):
            if failure == .unreadable { unreadable = unreadable ?? error }
            try await withdraw([receipt], for: failure, delay: length)
          }
        }
        if failures.count >= DecodingRecord.failureLimit, !decodingRecord.hasDecoded { break }
        // Only failures can leave something to be wanted.
        if leased.count < wanted, failures.isEmpty { break }
      }
      if !failures.isEmpty {
        let counts = decodingRecord.hasDecoded
        try await withdraw(failures.map(\.receipt), for: counts ? .undecodable : nil)
        if !counts { throw failures[0].error }
      }
      if let unreadable, deliveries.isEmpty { throw unreadable }
      return deliveries
    }
  }

  /// Reads and decodes items that were leased.
  ///
  /// - Throws: ``StoreError`` where no item can be read for reasons that have nothing to do with it; they are given back.
  private func read(_ leased: [LeasedItem]) async throws -> [Reading] {
    let (coder, decodingRecord) = (coder, decodingRecord)
    do throws(FileError) {
      return try await engine.readings(of: leased) { one, payload in
        let reading = coder.reading(of: one, payload)
        if case .good = reading { decodingRecord.noteSuccess() }
        return reading
      }
    } catch {
      try await withdraw(leased.map(\.receipt), for: nil, delay: 0)
      throw StoreError(
        error, during: .receive, store: information.name, message: "the files of the queue could not be read")
    }
  }

  /// Ends the leases of items that are not handed out; a receipt that is stale is ignored.
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the leases.
  ///   - failure: What is wrong with the items; `nil` if their deliveries do not count.
  ///   - delay: How long the items are kept back, in microseconds; defaults to the delay of the retry policy.
  private func withdraw(
    _ receipts: [DeliveryReceipt], for failure: DeliveryFailure?, delay: Int64? = nil
  ) async throws {
    let retrying = retrying
    _ = try await change(.receive) { core in
      core.staleReceipts(of: receipts) { receipt, ledger, records throws(QueueRefusal) in
        let delay = delay ?? retrying.delay(afterAttempt: receipt.attempt)
        if let failure {
          try ledger.reject(receipt, failure, delay: delay, into: &records)
        } else {
          try ledger.release(receipt, delay: delay, counts: false, into: &records)
        }
      }
    }
  }

  /// Waits for an item, and leases it.
  ///
  /// - Returns: The item, or the error of one that cannot be read or decoded.
  /// - Throws: ``StoreError``, also where no item could be decoded since the queue was opened; `CancellationError`.
  func next(lease: Duration) async throws -> Result<Delivery<Element>, StoreError> {
    let length = try microseconds(ofLease: lease, for: .receive)
    return try await running(.receive) {
      while true {
        let leased = try await engine.perform(.receive, .writes) { core in
          let (items, goesOn) = try core.lease(1, length: length)
          return items.isEmpty && !goesOn ? nil : items
        }
        guard let reading = try await read(leased).first else { continue }
        switch reading {
        case .good(let delivery): return .success(delivery)
        case .bad(let receipt, .undecodable, let error):
          if decodingRecord.noteFailure() {
            try await withdraw([receipt], for: nil, delay: 0)
            throw error
          }
          try await withdraw([receipt], for: decodingRecord.hasDecoded ? .undecodable : nil)
          return .failure(error)
        case .bad(let receipt, let failure, let error):
          try await withdraw([receipt], for: failure, delay: length)
          return .failure(error)
        }
      }
    }
  }

  /// Waits for an item, and does something with it, which acknowledges it.
  ///
  /// When `body` returns, the item is acknowledged; when it throws, as it should where its task is cancelled, the item is
  /// released, and kept back as ``QueueConfiguration/retryPolicy`` says; where even that fails, it waits until the lease
  /// ends.
  ///
  /// - Parameters:
  ///   - lease: How long the item is leased; must be greater than zero.
  ///   - extending: Whether the lease is renewed while `body` runs and its task is not cancelled; defaults to `false`. Then a
  ///     `body` that takes longer than the lease must call ``extend(_:lease:)-(DeliveryReceipt,_)`` itself.
  ///   - body: Gets the item with its key and receipt.
  /// - Returns: What `body` returns.
  /// - Throws: What `body` throws. ``StoreError``: `staleReceipt` if the lease ended before `body` returned, so that the
  ///   item will be delivered again; as ``receive(max:lease:)`` and ``acknowledge(_:)-(DeliveryReceipt)``.
  ///   `CancellationError` if the task was cancelled while it waited for an item.
  public func withNext<Result>(
    lease: Duration, extending: Bool = false, _ body: (Delivery<Element>) async throws -> Result
  ) async throws -> Result {
    let delivery = try await nextGood(lease: lease)
    let result: Result
    do {
      if extending {
        result = try await renewing(delivery.receipt, lease: lease) { try await body(delivery) }
      } else {
        result = try await body(delivery)
      }
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

  /// Runs a closure, and extends a lease until it ends or its task is cancelled.
  private func renewing<Result>(
    _ receipt: DeliveryReceipt, lease: Duration, _ body: () async throws -> Result
  ) async throws -> Result {
    let renewal = Task { await renew(receipt, lease: lease) }
    defer { renewal.cancel() }
    return try await withTaskCancellationHandler(operation: body) { renewal.cancel() }
  }

  private func renew(_ receipt: DeliveryReceipt, lease: Duration) async {
    while !Task.isCancelled {
      do {
        try await retrying.clock.sleep(for: lease / 3)
        try await extend(receipt, lease: lease)
      } catch let error as StoreError where error.code == .ioFailed || error.code == .full {
        // There are two thirds of the lease left to try again.
        continue
      } catch {
        // It is over, or the lease has ended, which acknowledging will tell.
        return
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
  /// An item that cannot be decoded is an element too, with its error; it comes back as ``QueueConfiguration/retryPolicy``
  /// says until it has used up its deliveries. The sequence ends when the queue is closed. Where no item is due it waits,
  /// without polling; several consumers share the items.
  ///
  /// - Parameter lease: How long each item is leased; must be greater than zero.
  public func deliveries(lease: Duration) -> Deliveries<Element> {
    Deliveries(queue: self, lease: lease)
  }
}
