#if LMDB
import Foundation
import Larder
import LarderCBOR
import LarderObservation
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// Errors of the base, cancellation, and other calls at the worst moments.
@Suite struct StoreQueueFaultTests {
  private let clock = ManualClock()
  private let base = HookedStore()

  private func open(maximumDeliveries: Int? = 5, wall: (@Sendable () -> Date)? = nil) async throws
    -> StoreQueue<HookedStore, Int>
  {
    let clock = clock
    return try await StoreQueue(
      base, prefix: "q/", codec: .cbor(),
      configuration: StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: maximumDeliveries)),
      environment: QueueEnvironment(clock: clock, now: wall ?? { clock.date }))
  }

  /// Yields to other tasks so often that a consumer waits afterward.
  private func yield() async {
    for _ in 0..<2000 { await Task.yield() }
  }

  /// Expects that a consumer that waits gets an item after an action.
  private func expectDelivery(
    of queue: StoreQueue<HookedStore, Int>, at place: SourceLocation = #_sourceLocation,
    after action: () async throws -> Void
  ) async throws {
    let isDelivered = Flag()
    try await withThrowingTaskGroup { group in
      group.addTask {
        do {
          _ = try await queue.nextDelivery(lease: .seconds(60))
          isDelivered.set()
        } catch is CancellationError {
          // Nothing woke the consumer.
        }
      }
      await yield()
      try await action()
      // Other threads have a part in the delivery, so it takes any number of turns.
      let end = ContinuousClock.now + .seconds(60)
      while !isDelivered.isSet, ContinuousClock.now < end { await Task.yield() }
      #expect(isDelivered.isSet, sourceLocation: place)
      group.cancelAll()
      try await group.waitForAll()
    }
  }

  @Test func `items behind a leased one of their group are parked together`() async throws {
    let queue = try await open()
    try await queue.enqueue((0..<300).map { QueueInput($0, group: "g") } + [QueueInput(300)])
    #expect(try await queue.receive(lease: .seconds(60))?.value == 0)
    let before = base.updateCount
    #expect(try await queue.receive(lease: .seconds(60))?.value == 300)
    #expect(try await queue.receive(lease: .seconds(60)) == nil)
    #expect(base.updateCount - before <= 3)
  }

  /// The calls of two consumers of one group, each performed by itself.
  enum Call: CaseIterable {
    case acknowledge, release, remove, removeLeased, replace, enqueue, receive, enqueueAndReceive

    func perform(on queue: StoreQueue<HookedStore, Int>, _ leased: DeliveryReceipt) async throws {
      switch self {
      case .acknowledge: _ = try await queue.acknowledge([leased])
      case .release: _ = try await queue.release([leased], after: .zero)
      case .remove: try await queue.removeValue(forKey: "2")
      case .removeLeased: try await queue.removeValue(forKey: "1")
      case .replace: try await queue.setValue(5, forKey: "2")
      case .enqueue: try await queue.enqueue(4, group: "g")
      case .receive:
        let receipts = try await queue.receive(max: 3, lease: .seconds(60)).map(\.receipt)
        _ = try await queue.release(receipts, after: .zero)
      case .enqueueAndReceive:
        try await Call.enqueue.perform(on: queue, leased)
        try await Call.receive.perform(on: queue, leased)
      }
    }
  }

  /// Each read of a call may see the group before or after another call, so each interleaving is tried.
  @Test(arguments: Call.allCases, [false, true])
  func `no item of a group is forgotten between two reads`(_ call: Call, areParked: Bool) async throws {
    for other in Call.allCases {
      var number = 0
      var isInterrupted = true
      while isInterrupted {
        number += 1
        let base = HookedStore()
        let queue = try await StoreQueue(
          base, prefix: "q/", codec: .cbor(Int.self),
          configuration: StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: nil)),
          environment: .manual(clock))
        try await queue.enqueue(1, id: "1", group: "g")
        let leased = try #require(try await queue.receive(lease: .seconds(60)))
        try await queue.enqueue((2...3).map { QueueInput($0, id: StoreKey("\($0)"), group: "g") })
        if areParked { #expect(try await queue.receive(lease: .seconds(60)) == nil) }
        base.setBeforeRead(number: number) { try await other.perform(on: queue, leased.receipt) }
        try await call.perform(on: queue, leased.receipt)
        isInterrupted = !base.clearBeforeRead()
        _ = try await queue.acknowledge([leased.receipt])
        while let delivery = try await queue.receive(lease: .seconds(60)) {
          try await queue.acknowledge(delivery.receipt)
        }
        #expect(try await queue.counts() == QueueCounts(), "\(other) before read \(number) of \(call)")
      }
    }
  }

  @Test func `the first item of a group comes first whatever its priority`() async throws {
    let queue = try await open()
    try await queue.enqueue(
      [QueueInput(0, priority: -5, group: "g")] + (1...3).map { QueueInput($0, priority: 5, group: "g") })
    for expected in 0...3 {
      let deliveries = try await queue.receive(max: 10, lease: .seconds(60))
      #expect(deliveries.map(\.value) == [expected])
      #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
    }
  }

  @Test func `a consumer that fails takes no signal of another`() async throws {
    let queue = try await open()
    let timers = KeyRange.prefix("q/t")
    base.setBeforeKeys { range, limit in
      // Looking for the first timer, before the consumer waits.
      guard limit == 1, range == timers else { return }
      throw StoreError(.ioFailed, during: .keys, message: "the disk failed")
    }
    await expectStoreError(.ioFailed) { try await queue.nextDelivery(lease: .seconds(60)) }
    try await expectDelivery(of: queue) { try await queue.enqueue(1) }
  }

  @Test func `an item that another call did not lease after all is delivered`() async throws {
    let queue = try await open()
    try await queue.enqueue(1)
    let gate = ManualClock()
    base.setBeforeUpdate {
      try await gate.sleep(for: .seconds(1))
      throw StoreError(.ioFailed, during: .update, message: "the disk failed")
    }
    let failing = Task { try await queue.receive(lease: .seconds(60)) }
    try await gate.waitForSleepers(1)
    try await expectDelivery(of: queue) {
      gate.advance(by: .seconds(1))
      await expectStoreError(.ioFailed) { try await failing.value }
    }
  }

  @Test func `an item that cannot become a dead letter blocks no other`() async throws {
    let queue = try await open(maximumDeliveries: 1)
    try await queue.enqueue([QueueInput(1, id: "a"), QueueInput(2)])
    #expect(try await queue.receive(lease: .seconds(60))?.value == 1)
    clock.advance(by: .seconds(60))
    base.setUnreadable("q/ia")
    #expect(try await queue.receive(max: 2, lease: .seconds(60)).map(\.value) == [2])
    #expect(try await queue.counts().dead == 0)
    base.setUnreadable(nil)
    #expect(try await queue.receive(lease: .seconds(60)) == nil)
    #expect(try await queue.deadLetters().map { try $0.value.get() } == [1])
  }

  @Test func `a consumer notices that the wall clock was set forward`() async throws {
    let wall = Locked(clock.date)
    let queue = try await open(wall: { wall.withLock { $0 } })
    try await queue.enqueue(1, after: .seconds(3600))
    try await expectDelivery(of: queue) {
      try await clock.waitForSleepers(1)
      wall.withLock { $0 += 3600 }
      clock.advance(by: .seconds(31))
    }
  }

  /// Causes the next updates of the base to fail as if its server was away.
  private func failUpdates(_ count: Int) {
    guard count > 0 else { return }
    base.setBeforeUpdate { [self] in
      failUpdates(count - 1)
      throw StoreError(.ioFailed, during: .update, message: "the server is away", isRetryable: true)
    }
  }

  @Test(arguments: ["withNext", "deliveries"]) func `a consumer continues after an outage`(call: String) async throws {
    let queue = try await open()
    try await queue.enqueue(1)
    failUpdates(10)
    let consumer = Task { () -> Int? in
      if call == "withNext" { return try await queue.withNext(lease: .seconds(600)) { $0.value } }
      return try await queue.deliveries(lease: .seconds(600)).first { _ in true }?.get().value
    }
    for _ in 0..<10 {
      try await clock.waitForSleepers(1)
      clock.advance(by: .seconds(30))
    }
    #expect(try await consumer.value == 1)
  }

  @Test func `an outage that lasts is reported`() async throws {
    let queue = try await open()
    try await queue.enqueue(1)
    failUpdates(11)
    let consumer = Task {
      var deliveries = queue.deliveries(lease: .seconds(600)).makeAsyncIterator()
      await expectStoreError(.ioFailed) { try await deliveries.next() }
      return try await deliveries.next()?.get().value
    }
    for _ in 0..<10 {
      try await clock.waitForSleepers(1)
      clock.advance(by: .seconds(30))
    }
    #expect(try await consumer.value == 1)
  }

  @Test func `a lease is renewed after an error of the base`() async throws {
    let queue = try await open()
    try await queue.enqueue(1)
    try await queue.withNext(lease: .seconds(30), renewsLease: true) { _ in
      try await clock.waitForSleepers(1)
      base.setBeforeUpdate { throw StoreError(.timedOut, during: .update, message: "the network is slow") }
      for _ in 0..<5 {
        clock.advance(by: .seconds(10))
        try await clock.waitForSleepers(1)
      }
    }
    #expect(try await queue.count() == 0)
  }

  @Test func `cancelling between two commits makes no receipt stale`() async throws {
    let (queue, other) = (try await open(), try await open())
    try await queue.enqueue([QueueInput(1), QueueInput(2)])
    let receipts = try await queue.receive(max: 2, lease: .seconds(60)).map(\.receipt)
    base.setBeforeUpdate {
      // The plan for the second item is not current any more, so that it needs another commit.
      let stale = try await other.extend([receipts[1]], lease: .seconds(90))
      #expect(stale.isEmpty)
    }
    base.cancelAfterUpdate(number: 2)
    let stale = try await Task { try await queue.acknowledge(receipts) }.value
    #expect(stale.isEmpty)
    #expect(try await queue.count() == 0)
  }

  @Test func `an item that was given back is still received alone`() async throws {
    let queue = try await open()
    try await queue.enqueue((0..<3).map { QueueInput($0) })
    for _ in 0..<2 {
      #expect(try await queue.receive(lease: .seconds(60))?.value == 0)
      clock.advance(by: .seconds(60))
    }
    let alone = try await queue.receive(max: 3, lease: .seconds(60))
    #expect(alone.map(\.value) == [0])
    _ = try await queue.release(alone.map(\.receipt), after: .zero, countsAsAttempt: false)
    #expect(try await queue.receive(max: 3, lease: .seconds(60)).map(\.value) == [0])
  }
}

/// An observable store whose operations a test can intercept.
final class HookedStore: PassingStore, ObservableStore {
  typealias Value = [UInt8]

  private struct State {
    var beforeKeys: (@Sendable (KeyRange, Int) throws -> Void)?
    var beforeUpdate: (@Sendable () async throws -> Void)?
    var beforeRead: (@Sendable () async throws -> Void)?
    var readsBeforeHook = 0
    var unreadable: StoreKey?
    var updates = 0
    var cancelledUpdate: Int?
  }

  let base = MemoryStore<[UInt8]>().observable()
  private let state = Locked(State())

  var updateCount: Int { state.withLock { $0.updates } }

  /// - Parameter hook: A closure that is called until it throws.
  func setBeforeKeys(_ hook: @escaping @Sendable (KeyRange, Int) throws -> Void) {
    state.withLock { $0.beforeKeys = hook }
  }

  /// - Parameter hook: A closure that is called once.
  func setBeforeUpdate(_ hook: @escaping @Sendable () async throws -> Void) {
    state.withLock { $0.beforeUpdate = hook }
  }

  /// - Parameters:
  ///   - number: The number of the read, counted from now.
  ///   - hook: A closure that is called once, before the read.
  func setBeforeRead(number: Int, _ hook: @escaping @Sendable () async throws -> Void) {
    state.withLock { ($0.beforeRead, $0.readsBeforeHook) = (hook, number) }
  }

  /// Returns whether there was a hook that has not been called.
  func clearBeforeRead() -> Bool {
    state.withLock { state in
      defer { state.beforeRead = nil }
      return state.beforeRead != nil
    }
  }

  private func noteRead() async throws {
    let hook = state.withLock { state in
      state.readsBeforeHook -= 1
      guard state.readsBeforeHook == 0 else { return (@Sendable () async throws -> Void)?.none }
      defer { state.beforeRead = nil }
      return state.beforeRead
    }
    try await hook?()
  }

  func setUnreadable(_ key: StoreKey?) { state.withLock { $0.unreadable = key } }

  /// Cancels the task of an update after it, counted from now.
  func cancelAfterUpdate(number: Int) { state.withLock { $0.cancelledUpdate = $0.updates + number } }

  func values(forKeys keys: [StoreKey]) async throws -> [[UInt8]?] {
    try Task.checkCancellation()
    try await noteRead()
    if let key = state.withLock({ $0.unreadable }), keys.contains(key) {
      throw StoreError(.corrupted, during: .values, key: key, message: "the value is damaged")
    }
    return try await base.values(forKeys: keys)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    if let hook = state.withLock({ $0.beforeKeys }) {
      do {
        try hook(range, limit)
      } catch {
        state.withLock { $0.beforeKeys = nil }
        throw error
      }
    }
    try await noteRead()
    return try await base.keys(in: range, limit: limit, order: order)
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<[UInt8]>] {
    try await noteRead()
    return try await base.entries(in: range, limit: limit, order: order)
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<[UInt8]>) -> UpdateDecision<Result>
  ) async throws -> Result {
    let hook = state.withLock { state in
      defer { state.beforeUpdate = nil }
      return state.beforeUpdate
    }
    try await hook?()
    let result = try await base.update(deciding: keys, body)
    let isCancelled = state.withLock { state in
      state.updates += 1
      return state.updates == state.cancelledUpdate
    }
    if isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
    return result
  }
}
#endif
