/// The leases of deliveries that a consumer is processing.
///
/// ``DurableQueue/withNext(lease:renewsLease:_:)`` and `QueueWorker` process items with this class, and your own consumer can
/// do so too:
///
/// ```swift
/// let leases = queue.hold(deliveries.map(\.receipt), lease: .seconds(30))
/// do {
///   try await leases.run { try await send(deliveries) }
/// } catch {
///   _ = try await leases.release()
///   throw error
/// }
/// let stale = try await leases.acknowledge()
/// ```
///
/// - The leases are renewed in each third of their duration, until ``end()`` is called or the object is released. A renewal
///   that fails is repeated.
/// - The leases are lost if the queue says that all receipts are stale, or if they could not be renewed for their duration.
///   Another consumer may then have the items, so ``run(isolation:_:)`` cancels its closure.
/// - Acknowledging and releasing are repeated after an error that a retry can mend, with growing pauses, until the leases
///   have ended. They are renewed in the meantime.
/// - If the outcome of an attempt is unknown and the next one finds a receipt stale although its lease is still running, the
///   first attempt has succeeded, because no other consumer can have ended the lease.
///
/// The end of a lease is computed from the time when the call that began or renewed it was made, by the queue's clock.
/// A process that was suspended, for example with the signal `SIGSTOP`, notices when it continues.
public final class HeldLeases: Sendable {
  private struct State {
    var leases: LeaseState
    var onLoss: (@Sendable () -> Void)?
    var renewal: Task<Void, Never>?
    var hasEnded = false
  }

  /// The receipts of the deliveries.
  public let receipts: [DeliveryReceipt]

  private let queue: any DurableQueue
  private let clock: any Clock<Duration>
  private let length: Duration
  private let renews: Bool
  private let time: ElapsedTime
  private let state: Locked<State>

  fileprivate init(
    _ receipts: [DeliveryReceipt], of queue: any DurableQueue, lease: Duration, age: Duration, renews: Bool
  ) {
    self.receipts = receipts
    self.queue = queue
    self.renews = renews
    clock = queue.clock
    length = lease
    time = ElapsedTime(by: queue.clock)
    state = Locked(State(leases: LeaseState(receipts, length: lease, from: time.duration - age)))
  }

  deinit {
    end()
  }

  /// A Boolean value that indicates whether the leases have ended before the consumer did, as far as it knows.
  public var areLost: Bool { state.withLock { $0.leases.areLost } }

  /// Ends the renewal.
  ///
  /// Calling it again is a no-op.
  public func end() {
    let renewal = state.withLock { state in
      state.hasEnded = true
      defer { (state.renewal, state.onLoss) = (nil, nil) }
      return state.renewal
    }
    renewal?.cancel()
  }

  /// Calls a closure when the leases are lost, or immediately if they are.
  ///
  /// - Parameter action: The closure. It replaces an earlier one. It must return quickly, and must not call the queue.
  public func onLoss(_ action: @escaping @Sendable () -> Void) {
    let areLost = state.withLock { state in
      guard !state.leases.areLost else { return true }
      if !state.hasEnded { state.onLoss = action }
      return false
    }
    if areLost { action() }
  }

  /// Returns the receipts whose leases are running.
  ///
  /// If a third of their duration has passed since they were known to run, the leases are renewed first. Call the method
  /// before you start work on items that were received some time ago.
  public func confirm() async -> [DeliveryReceipt] {
    let now = time.duration
    if state.withLock({ now >= $0.leases.nextRenewal }) { await renew() }
    return state.withLock { $0.leases.held }
  }

  // MARK: Processing

  /// Runs a closure in a task of its own, which is cancelled if the leases are lost or the caller is cancelled.
  ///
  /// If the caller is cancelled, the renewal ends, too, so a closure that ignores its cancellation keeps no item.
  ///
  /// - Parameters:
  ///   - isolation: The actor that the closure runs on. Defaults to your actor.
  ///   - body: The closure.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`; ``StoreError`` with `staleReceipt` if `body` throws after the leases were lost, with the
  ///   error of `body` as the underlying one.
  public func run<Result>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await withCancellableTask(body, isolation: isolation, onCancel: { end() }) { onLoss($0) }
    } catch  where areLost {
      throw StoreError(
        .staleReceipt, during: .extend, store: queue.information.name,
        message: "the lease ended before the item was processed, so the closure was cancelled", underlying: error)
    }
  }

  /// Acknowledges deliveries and permanently removes their items; see
  /// ``DurableQueue/acknowledge(_:)-([DeliveryReceipt])``.
  ///
  /// Acknowledging ignores cancellation, and is repeated as described for the class.
  ///
  /// ```swift
  /// let stale = try await leases.acknowledge()
  /// if !stale.isEmpty { logger.warning("\(stale.count) items will be delivered again") }
  /// ```
  ///
  /// - Parameter receipts: The receipts. Defaults to `nil`, for all of them.
  /// - Returns: The receipts that are stale. The items of all other receipts are removed.
  /// - Throws: ``StoreError`` of the last attempt.
  public func acknowledge(_ receipts: [DeliveryReceipt]? = nil) async throws -> [DeliveryReceipt] {
    let receipts = receipts ?? self.receipts
    return try await settle { try await queue.acknowledge(receipts) }
  }

  /// Releases items for another delivery; see
  /// ``DurableQueue/release(_:after:countsAsAttempt:)-([DeliveryReceipt],_,_)``.
  ///
  /// Releasing ignores cancellation, and is repeated as described for the class.
  ///
  /// - Parameters:
  ///   - receipts: The receipts. Defaults to `nil`, for all of them.
  ///   - delay: The delay until the items can be received again. Defaults to that of the queue's retry policy.
  ///   - countsAsAttempt: A Boolean value that indicates whether the deliveries count. Defaults to `true`.
  /// - Returns: The receipts that are stale. The items of all other receipts are released.
  /// - Throws: ``StoreError`` of the last attempt.
  public func release(
    _ receipts: [DeliveryReceipt]? = nil, after delay: Duration? = nil, countsAsAttempt: Bool = true
  ) async throws -> [DeliveryReceipt] {
    let receipts = receipts ?? self.receipts
    return try await settle { try await queue.release(receipts, after: delay, countsAsAttempt: countsAsAttempt) }
  }

  private func settle(_ attempt: () async throws -> [DeliveryReceipt]) async throws -> [DeliveryReceipt] {
    var settlement = SettlementState()
    // A consumer that renews its leases by itself has not said when they end.
    let limit = renews ? .zero : time.duration + length
    while true {
      do {
        let stale = try await attempt()
        return settlement.stale(stale, timeLeft: timeLeft)
      } catch let error as StoreError {
        var generator = SystemRandomNumberGenerator()
        let timeLeft = max(timeLeft, limit - time.duration)
        guard let pause = settlement.failed(error, timeLeft: timeLeft, using: &generator) else { throw error }
        // In a task of its own, so that a cancellation does not shorten the pause.
        _ = await Task { [clock] in try await clock.sleep(for: pause) }.result
      }
    }
  }

  private var timeLeft: Duration {
    let now = time.duration
    return state.withLock { $0.leases.end } - now
  }

  // MARK: Renewing

  fileprivate func startRenewing() {
    let renewal = Task { [weak self, clock] in
      while !Task.isCancelled, let pause = self?.pauseBeforeRenewal, await clock.hasSlept(for: pause) {
        await self?.renew()
      }
    }
    state.withLock { $0.renewal = renewal }
  }

  /// The time until the next renewal, or `nil` if there is no further one.
  private var pauseBeforeRenewal: Duration? {
    let now = time.duration
    return state.withLock { state in
      state.hasEnded || state.leases.areLost ? nil : max(state.leases.nextRenewal - now, .zero)
    }
  }

  private func renew() async {
    let start = time.duration
    let held = state.withLock { $0.leases.held }
    let result: Result<[DeliveryReceipt], any Error>
    do {
      result = .success(try await queue.extend(held, lease: length))
    } catch StoreError.Code.closed {
      // Acknowledging reports the error.
      return end()
    } catch {
      result = .failure(error)
    }
    let now = time.duration
    let onLoss = state.withLock { state in
      switch result {
      case .success(let stale):
        state.leases.renewed(at: start, stale: stale)
      case .failure:
        var generator = SystemRandomNumberGenerator()
        state.leases.renewalFailed(at: now, using: &generator)
      }
      guard state.leases.areLost else { return nil as (@Sendable () -> Void)? }
      defer { state.onLoss = nil }
      return state.onLoss
    }
    onLoss?()
  }
}

extension DurableQueue {
  /// Returns the leases of received deliveries.
  ///
  /// They are renewed from now on.
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the deliveries.
  ///   - lease: The duration that they were received with, and of each renewal.
  ///   - age: The time since the deliveries were received, or since that call began. Defaults to zero.
  ///   - renews: A Boolean value that indicates whether the leases are renewed. Defaults to `true`.
  public func hold(
    _ receipts: [DeliveryReceipt], lease: Duration, age: Duration = .zero, renews: Bool = true
  ) -> HeldLeases {
    let leases = HeldLeases(receipts, of: self, lease: lease, age: age, renews: renews)
    if renews { leases.startRenewing() }
    return leases
  }
}
