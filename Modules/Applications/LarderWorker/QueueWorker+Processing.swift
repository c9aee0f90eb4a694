import Larder

/// Processing leased items.
extension QueueWorker {
  /// The jobs of a worker.
  struct Jobs: Sendable {
    /// The jobs that are being processed, by their numbers.
    var running: [Int: (run: ClosureRun, leases: HeldLeases)] = [:]
    var nextNumber = 0
    /// A Boolean value that indicates whether all closures are cancelled, also those that are about to start.
    var areStopped = false
    /// The items with a hung closure that processes nothing else.
    var hungItems: Set<HungItem> = []
  }

  /// An item, by the position of its queue and its own.
  struct HungItem: Sendable, Hashable {
    let queue: Int
    let sequence: UInt128
  }

  // MARK: Stopping

  func add(_ run: ClosureRun, _ leases: HeldLeases) -> Int {
    let (number, areStopped) = jobs.withLock { jobs in
      jobs.nextNumber += 1
      jobs.running[jobs.nextNumber] = (run, leases)
      return (jobs.nextNumber, jobs.areStopped)
    }
    if areStopped { run.cancel(.stopped) }
    return number
  }

  func remove(_ number: Int) {
    let job = jobs.withLock { $0.running.removeValue(forKey: number) }
    job?.leases.end()
  }

  /// Cancels all closures.
  func stopClosures() {
    let running = jobs.withLock { jobs in
      jobs.areStopped = true
      return jobs.running.sorted { $0.key < $1.key }.map(\.value.run)
    }
    for run in running { run.cancel(.stopped) }
    slots.stopWaitingForAll()
  }

  /// Waits until the closures have ended, and cancels them after the time limit of the shutdown.
  func waitForClosures() async {
    if !jobs.withLock({ $0.areStopped }) {
      await slots.waitUntilIdle(nil, atMost: shutdownLimit, by: clock)
      stopClosures()
    }
    // A closure counts as hung after half of this time, and its item is released.
    await slots.waitUntilIdle(nil, atMost: Self.cancellationLimit * 2, by: clock)
    // The queue does not answer, so the leases of the items end by themselves.
    for job in jobs.withLock({ Array($0.running.values) }) { job.leases.end() }
  }

  // MARK: Processing

  /// Processes leased items that have a slot, and frees the slot and releases the permit unless the closure is hung.
  func process(
    _ job: QueueJob, _ leases: HeldLeases, _ run: ClosureRun, _ permit: LimiterPermit?, of number: Int
  ) async {
    let handler = handlers[number]
    var (hasStarted, isHung) = (false, false)
    // A process that was suspended before this may have lost the items.
    let held = await leases.confirm()
    if held.count < job.receipts.count {
      reportLoss(Set(job.receipts).subtracting(held), job, of: handler)
      if !held.isEmpty { await giveBack(held, to: handler) }
    } else if hasHungClosure(job, number) {
      await release(job, leases, to: handler, after: handler.closureIsHung)
    } else {
      leases.onLoss { run.cancel(.leaseLost) }
      hasStarted = true
      await returnStarts(of: permit, except: job.receipts.count, of: handler)
      let outcome = await run.run(atMost: handler.timeLimit, job.process)
      if case .hung = outcome {
        isHung = true
        noteHung(job, number)
      }
      await settle(job, leases, outcome, run.cancellation, of: handler)
    }
    leases.end()
    guard isHung else {
      await release(permit, usedStarts: hasStarted ? job.receipts.count : 0, of: handler)
      counters.withLock { $0.running -= job.receipts.count }
      return slots.change { $0.end(number) }
    }
    reportHung(job, number)
    run.onEnd {
      self.endHung(job, number)
      Task { await self.release(permit, usedStarts: job.receipts.count, of: handler) }
    }
  }

  /// Acknowledges or releases items after their closure.
  private func settle(
    _ job: QueueJob, _ leases: HeldLeases, _ outcome: ClosureState.Outcome, _ cancellation: ClosureCancellation?,
    of handler: QueueHandler
  ) async {
    switch (outcome, cancellation) {
    case (.returned(let errors), _):
      let failed = job.receipts.filter { errors[$0] != nil }
      await acknowledge(job.receipts.filter { errors[$0] == nil }, job, leases, of: handler)
      if let first = failed.first, let error = errors[first] {
        await release(job, leases, only: failed, to: handler, after: error)
      }
    case (.threw, .stopped): await giveBack(job.receipts, leases, to: handler)
    case (.threw, .timeLimit), (.hung, .timeLimit):
      await release(job, leases, to: handler, after: handler.timeLimitExceeded)
    case (_, .leaseLost): reportLoss(Set(job.receipts), job, of: handler)
    case (.threw(let error), nil): await release(job, leases, to: handler, after: error)
    case (.hung, _): await release(job, leases, to: handler, after: handler.closureIsHung)
    }
  }

  private func acknowledge(
    _ receipts: [DeliveryReceipt], _ job: QueueJob, _ leases: HeldLeases, of handler: QueueHandler
  ) async {
    guard !receipts.isEmpty else { return }
    do {
      let stale = try await leases.acknowledge(receipts)
      counters.withLock { $0.processed += receipts.count - stale.count }
      if !stale.isEmpty { reportLoss(Set(stale), job, of: handler) }
    } catch {
      report(error, of: handler)
    }
  }

  /// Releases items that failed, all of a job if no items are given.
  private func release(
    _ job: QueueJob, _ leases: HeldLeases, only receipts: [DeliveryReceipt]? = nil, to handler: QueueHandler,
    after failure: any Error
  ) async {
    let receipts = receipts ?? job.receipts
    counters.withLock { counters in
      if StoreError.Code.timedOut ~= failure {
        counters.timedOut += receipts.count
      } else {
        counters.failed += receipts.count
      }
    }
    onEvent?(
      .failed(
        queue: handler.queue.information.name, keys: job.keys(of: receipts), attempt: job.attempt, error: failure))
    var generator = SystemRandomNumberGenerator()
    let delay = handler.retryPolicy?.delay(afterAttempt: job.attempt, using: &generator)
    do {
      _ = try await leases.release(receipts, after: delay)
    } catch {
      // The item is delivered again when its lease ends.
      report(error, of: handler)
    }
  }

  /// Releases items that were not processed, as if they had not been delivered.
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the items.
  ///   - leases: Their leases. Defaults to `nil`, for items that were just received.
  ///   - handler: The handler of their queue.
  func giveBack(_ receipts: [DeliveryReceipt], _ leases: HeldLeases? = nil, to handler: QueueHandler) async {
    guard !receipts.isEmpty else { return }
    let leases = leases ?? handler.queue.hold(receipts, lease: handler.lease)
    defer { leases.end() }
    do {
      let stale = try await leases.release(receipts, after: .zero, countsAsAttempt: false)
      counters.withLock { $0.givenBack += receipts.count - stale.count }
    } catch {
      report(error, of: handler)
    }
  }

  // MARK: Hung closures

  private func hasHungClosure(_ job: QueueJob, _ number: Int) -> Bool {
    guard let item = HungItem(job, number) else { return false }
    return jobs.withLock { $0.hungItems.contains(item) }
  }

  private func noteHung(_ job: QueueJob, _ number: Int) {
    guard let item = HungItem(job, number) else { return }
    jobs.withLock { _ = $0.hungItems.insert(item) }
  }

  private func reportHung(_ job: QueueJob, _ number: Int) {
    slots.change { $0.hang(number) }
    let health = self.health()
    onEvent?(.slotHung(queue: handlers[number].queue.information.name, health: health))
    guard health.isStalled else { return }
    onEvent?(.stalled(health: health))
    exitIfStalled()
  }

  private func endHung(_ job: QueueJob, _ number: Int) {
    if let item = HungItem(job, number) { jobs.withLock { _ = $0.hungItems.remove(item) } }
    counters.withLock { $0.running -= job.receipts.count }
    slots.change { $0.endHung() }
  }

  // MARK: Reporting

  func report(_ error: any Error, of handler: QueueHandler) {
    counters.withLock { $0.queueErrors += 1 }
    onEvent?(.queueFailed(queue: handler.queue.information.name, error: error))
  }

  private func reportLoss(_ lost: Set<DeliveryReceipt>, _ job: QueueJob, of handler: QueueHandler) {
    counters.withLock { $0.leasesLost += lost.count }
    onEvent?(.leaseLost(queue: handler.queue.information.name, keys: job.keys(of: lost), attempt: job.attempt))
  }
}

extension QueueWorker.HungItem {
  /// Creates the item of a job, or returns `nil` for a batch, of which any item may be the cause.
  fileprivate init?(_ job: QueueJob, _ queue: Int) {
    guard let receipt = job.receipts.first, job.receipts.count == 1 else { return nil }
    self.init(queue: queue, sequence: receipt.sequence)
  }
}

extension QueueHandler {
  /// The error of a closure that exceeded its time limit.
  fileprivate var timeLimitExceeded: StoreError {
    StoreError(
      .timedOut, during: .receive, store: queue.information.name,
      message: "the closure did not end within the time limit of \(timeLimit ?? .zero)", isRetryable: true)
  }

  /// The error of an item whose closure ignores its cancellation.
  fileprivate var closureIsHung: StoreError {
    StoreError(
      .conflict, during: .receive, store: queue.information.name,
      message: "the closure ignores its cancellation and is still running", isRetryable: true)
  }
}
