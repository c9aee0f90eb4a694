import Larder

/// Taking items of queues.
extension QueueWorker {
  /// The maximum number of items that are leased in one call.
  private static let batchLimit = 64

  /// Takes items of one queue and starts to process them, until there will be no more.
  func work(on number: Int) async {
    let handler = handlers[number]
    while await slots.take(for: number) {
      var slotCount = 1
      var jobs: [QueueJob] = []
      let permission = await waitForPermission(number)
      if permission.isGranted {
        // With a limit, each item waits for its turn before the next one is leased.
        if !isLimited(handler) { slotCount += slots.takeFree(Self.batchLimit - 1) }
        jobs = await dueJobs(slotCount, of: handler)
      }
      if jobs.isEmpty {
        slots.change { [slotCount] in $0.free(slotCount) }
        await release(permission.permit, usedStarts: 0, of: handler)
        guard let next = await nextJobs(of: number) else { return }
        (slotCount, jobs) = next
        await start(jobs, inSlots: slotCount, nil, of: number)
      } else {
        await start(jobs, inSlots: slotCount, permission.permit, of: number)
      }
    }
  }

  private func isLimited(_ handler: QueueHandler) -> Bool { rateLimit != nil || handler.limiter != nil }

  /// Waits until the limits permit another start.
  ///
  /// - Returns: A Boolean value that indicates whether an item may be leased, and its permit if there is a limiter. If
  ///   not, there is no item, or the worker is shutting down.
  private func waitForPermission(_ number: Int) async -> (isGranted: Bool, permit: LimiterPermit?) {
    let handler = handlers[number]
    guard isLimited(handler) else { return (true, nil) }
    do {
      // So that a queue without items uses up no start.
      guard try await handler.hasItems() else { return (false, nil) }
    } catch {
      // Leasing reports the error.
    }
    guard await waitForRate(number) else { return (false, nil) }
    guard let limiter = handler.limiter else { return (true, nil) }
    let permit = await repeating(number) { try await limiter.acquire(starts: handler.batch) }
    return (permit != nil, permit)
  }

  /// Waits for the time when the rate limit permits another start.
  ///
  /// - Returns: A Boolean value that indicates whether the time has come. If not, the worker is shutting down.
  private func waitForRate(_ number: Int) async -> Bool {
    // With the slot, so that queues that have waited for slots don't start together.
    let delay = rate.withLock { $0?.reserve(at: elapsed.duration) } ?? .zero
    guard delay > .zero else { return true }
    do {
      try await untilShutdown(number) { try await self.clock.sleep(for: delay) }
      return true
    } catch {
      return false
    }
  }

  /// Repeats a step until it succeeds.
  ///
  /// Errors are reported, and a pause follows each.
  ///
  /// - Returns: The result of the step, or `nil` if the worker is shutting down.
  private func repeating<Result: Sendable>(
    _ number: Int, _ step: @escaping @Sendable () async throws -> Result
  ) async -> Result? {
    var failures = 0
    while true {
      let pause = failures == 0 ? .zero : RetryPolicy.ofConsumers.delay(afterAttempt: failures)
      do {
        return try await untilShutdown(number) {
          if pause > .zero { try await self.clock.sleep(for: pause) }
          return try await step()
        }
      } catch {
        guard !isShuttingDown else { return nil }
        report(error, of: handlers[number])
        failures += 1
      }
    }
  }

  /// Returns the starts of a permit for a batch that is not full.
  func returnStarts(of permit: LimiterPermit?, except count: Int, of handler: QueueHandler) async {
    guard let permit, count < permit.starts else { return }
    do {
      try await permit.returnStarts(except: count)
    } catch {
      // They count as starts.
      report(error, of: handler)
    }
  }

  /// Releases a permit.
  ///
  /// - Parameters:
  ///   - permit: The permit, or `nil` if there is no limiter.
  ///   - usedStarts: The number of its starts that have happened.
  ///   - handler: The handler, for reports.
  func release(_ permit: LimiterPermit?, usedStarts: Int, of handler: QueueHandler) async {
    guard let permit else { return }
    do {
      try await permit.release(usedStarts: usedStarts)
    } catch {
      // The permit ends with its lease.
      report(error, of: handler)
    }
  }

  /// Leases items that are due, without waiting for them.
  private func dueJobs(_ count: Int, of handler: QueueHandler) async -> [QueueJob] {
    guard !isShuttingDown else { return [] }
    do {
      return try await handler.receive(count)
    } catch StoreError.Code.closed {
      return []
    } catch {
      report(error, of: handler)
      return []
    }
  }

  /// Waits for an item, and leases it if a slot is free and the rate limit permits its start.
  ///
  /// - Returns: The jobs with the number of slots that were taken, without jobs if no slot was free; `nil` if the worker
  ///   is shutting down or the queue is closed.
  private func nextJobs(of number: Int) async -> (slotCount: Int, jobs: [QueueJob])? {
    let handler = handlers[number]
    while true {
      let next = await repeating(number) { () -> Result<AwaitedJobs, StoreError>? in
        do {
          return try await handler.next { self.takeSlotAtOnce(for: handler) }
        } catch StoreError.Code.closed {
          return nil
        }
      }
      switch next ?? nil {
      case .success(.withSlot(let jobs)): return (1, jobs)
      case .success(.withoutSlot(let receipt)):
        await giveBack([receipt], to: handler)
        return (0, [])
      case .failure(let error):
        // The queue has released the item, so the next one is taken immediately.
        report(error, of: handler)
      case nil: return nil
      }
    }
  }

  private func takeSlotAtOnce(for handler: QueueHandler) -> Bool {
    // A permit must be waited for, and an item that waits is left to other workers.
    guard handler.limiter == nil, slots.takeFree(1) == 1 else { return false }
    let isPermitted = rate.withLock { $0?.reserveAtOnce(at: elapsed.duration) } ?? true
    if !isPermitted { slots.change { $0.free(1) } }
    return isPermitted
  }

  // MARK: Starting

  /// Starts to process leased items, and waits while an item that must run alone does.
  ///
  /// Jobs without a slot, and all but one that must run alone, are given back. With a permit, there is one slot.
  private func start(_ jobs: [QueueJob], inSlots slotCount: Int, _ permit: LimiterPermit?, of number: Int) async {
    let handler = handlers[number]
    let together = jobs.filter { !$0.isSuspect }.prefix(slotCount)
    for job in together { start(job, handler.hold(job), permit, of: number) }
    let alone = together.count < slotCount ? jobs.first(where: \.isSuspect) : nil
    slots.change { $0.free(slotCount - together.count - (alone == nil ? 0 : 1)) }
    let leases = alone.map(handler.hold)
    let others =
      jobs.filter { !$0.isSuspect }.dropFirst(together.count) + jobs.filter(\.isSuspect).dropFirst(alone == nil ? 0 : 1)
    await giveBack(others.flatMap(\.receipts), to: handler)
    guard let alone, let leases else {
      if together.isEmpty { await release(permit, usedStarts: 0, of: handler) }
      return
    }
    // No other item of the queue is leased until it has ended, so that a crash is not a delivery of it. Both waits have a
    // limit, so that a closure that does not end stops nothing.
    await slots.waitUntilIdle(number, atMost: handler.lease, by: clock)
    guard !isShuttingDown else {
      leases.end()
      slots.change { $0.free(1) }
      await release(permit, usedStarts: 0, of: handler)
      return await giveBack(alone.receipts, to: handler)
    }
    start(alone, leases, permit, of: number)
    await slots.waitUntilIdle(number, atMost: handler.lease, by: clock)
  }

  /// Starts to process leased items that have a slot, and a permit if there is a limiter.
  private func start(_ job: QueueJob, _ leases: HeldLeases, _ permit: LimiterPermit?, of number: Int) {
    slots.change { $0.start(number) }
    counters.withLock { $0.running += job.receipts.count }
    if job.receipts.count > 1 {
      _ = rate.withLock { $0?.reserve(job.receipts.count - 1, at: elapsed.duration) }
    }
    let run = ClosureRun(clock: clock, patience: Self.cancellationLimit)
    let jobNumber = add(run, leases)
    Task {
      await process(job, leases, run, permit, of: number)
      remove(jobNumber)
    }
  }
}
