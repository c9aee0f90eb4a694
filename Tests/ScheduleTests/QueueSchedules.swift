import Larder
import LarderCBOR
import LarderObservation
import LarderQueue
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// Queues in many schedules: leases, order, waiting consumers, and cancellation.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct QueueSchedules {
  /// A kind of queue.
  struct Subject: Sendable {
    let name: String

    /// A Boolean value that indicates whether a waiting consumer hears of each item, and needs no time to find it.
    let wakesConsumers: Bool

    /// A Boolean value that indicates whether both objects are the same one.
    ///
    /// Otherwise, each of them reports what it buries itself.
    let isOneObject: Bool

    /// Opens two objects for one queue, or the same one twice.
    let open: @Sendable (ScheduledContext) async throws -> (any DurableQueue<Int>, any DurableQueue<Int>)
  }

  static let storeQueues = [
    Subject(name: "a queue in a store", wakesConsumers: true, isOneObject: true) { context in
      let queue = try await storeQueue(in: context.slowStore(), 0, context)
      return (queue, queue)
    },
    Subject(name: "two queues in an observable store", wakesConsumers: true, isOneObject: false) { context in
      let bytes = context.slowStore().observable()
      return (try await storeQueue(in: bytes, 0, context), try await storeQueue(in: bytes, 1, context))
    },
    Subject(name: "two queues in a store", wakesConsumers: false, isOneObject: false) { context in
      let bytes = context.slowStore()
      return (try await storeQueue(in: bytes, 0, context), try await storeQueue(in: bytes, 1, context))
    },
  ]

  #if DEBUG
  // The threads of files take part in debug builds only.
  static let all =
    storeQueues + [
      Subject(name: "a queue in files", wakesConsumers: true, isOneObject: true) { context in
        let queue = try await QueueStore<Int>(
          path: "/queue", codec: .cbor(), configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 3)),
          fileSystem: SimulatedFileSystem(seed: context.seed),
          environment: .manual(context.clock, randomness: context.generator("queue")))
        return (queue, queue)
      }
    ]
  #else
  static let all = storeQueues
  #endif

  private static func storeQueue<Base: DataStore<[UInt8]>>(
    in bytes: Base, _ number: Int, _ context: ScheduledContext
  ) async throws -> StoreQueue<Base, Int> {
    try await StoreQueue(
      bytes, prefix: "q/", codec: .cbor(Int.self),
      configuration: StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 3)),
      environment: .manual(context.clock, randomness: context.generator("queue \(number)")))
  }

  /// The items by which a test ends its consumers.
  private static let end = -1

  // MARK: Leases

  /// Consumers that hold, lose, release and extend leases: no item is delivered beside a lease or after its acknowledgement, each
  /// receipt is valid until its lease ends, and each item is acknowledged or becomes a dead letter once.
  @Test(arguments: all.indices) func `leases exclude each other`(_ index: Int) async throws {
    let subject = Self.all[index]
    try await runSchedules("leases of \(subject.name)") { context in
      let queues = try await subject.open(context)
      let (log, dead) = (Shared(DeliveryLog()), Shared<[DeadLetterEvent]>([]))
      let observations = [queues.0, queues.1].map { queue in
        queue.observeDeadLetters { event in dead.change { $0.append(event) } }
      }
      defer { for observation in observations { observation.cancel() } }
      let items = 0..<4
      try await concurrently(4) { task in
        if task == 3 {
          for item in items { try await queues.0.enqueue(item) }
          while log.value.finished.count + Set(dead.value.map(\.sequence)).count < items.count {
            try await context.clock.sleep(for: .seconds(1))
          }
          for _ in 0..<3 { try await queues.1.enqueue(Self.end) }
        } else {
          let queue = task == 0 ? queues.1 : queues.0
          try await Self.consume(queue, log, context, task)
        }
      }
      let letters = try await queues.0.deadLetters()
      guard Set(letters.map(\.sequence)) == Set(dead.value.map(\.sequence)), letters.allSatisfy({ $0.attempts == 3 }),
        log.value.finished.count + letters.count == items.count,
        try await queues.0.counts() == QueueCounts(dead: letters.count)
      else { throw Wrong("\(log.value.finished) acknowledged, dead \(letters), \(try await queues.0.counts())") }
      let observerCount = subject.isOneObject ? 2 : 1
      guard dead.value.count == observerCount * letters.count else { throw Wrong("\(dead.value) for \(letters)") }
    }
  }

  private static func consume(
    _ queue: some DurableQueue<Int>, _ log: Shared<DeliveryLog>, _ context: ScheduledContext, _ task: Int
  ) async throws {
    let (clock, lease) = (context.clock, Duration.seconds(10))
    var generator = context.generator("consumer \(task)")
    while true {
      let delivery = try await queue.nextDelivery(lease: lease).get()
      if delivery.value == end { return try await queue.acknowledge(delivery.receipt) }
      try log.change { try $0.deliver(delivery, lease: lease, at: clock.now.offset) }
      switch Int.random(in: 0..<7, using: &generator) {
      case 0: break
      case 1:
        try await clock.sleep(for: .seconds(12))
        try await log.acknowledge(delivery, in: queue, clock)
      case 2: try await log.release(delivery, after: .zero, in: queue, clock)
      case 3: try await log.release(delivery, after: .seconds(5), in: queue, clock)
      case 4:
        try await clock.sleep(for: .seconds(6))
        try await log.extend(delivery, lease: .seconds(10), in: queue, clock)
        try await clock.sleep(for: .seconds(9))
        try await log.acknowledge(delivery, in: queue, clock)
      case 5:
        try await clock.sleep(for: .seconds(9))
        try await log.acknowledge(delivery, in: queue, clock)
      default: try await log.acknowledge(delivery, in: queue, clock)
      }
    }
  }

  /// An item whose lease is renewed is delivered once, however long its consumer takes.
  @Test(arguments: all.indices) func `a renewed lease does not end`(_ index: Int) async throws {
    let subject = Self.all[index]
    // The renewal is cancelled by the code under test.
    try await runSchedules("renewals of \(subject.name)", switchesAtLocks: false) { context in
      let queues = try await subject.open(context)
      for item in 0..<2 { try await queues.0.enqueue(item) }
      let consumed = Shared<Set<Int>>([])
      try await concurrently(3) { task in
        guard task == 2 else {
          let queue = task == 0 ? queues.0 : queues.1
          return try await queue.withNext(lease: .seconds(30), renewsLease: true) { delivery in
            try await context.clock.sleep(for: .seconds(100))
            consumed.change { _ = $0.insert(delivery.value) }
          }
        }
        // Looks for items whose leases have ended.
        while consumed.value.count < 2 {
          for delivery in try await queues.1.receive(max: 1, lease: .seconds(60)) {
            guard delivery.attempt == 1 else { throw Wrong("item \(delivery.value) was delivered again") }
            try await queues.1.release(delivery.receipt, after: .zero, countsAsAttempt: false)
          }
          try await context.clock.sleep(for: .seconds(7))
        }
      }
      guard try await queues.0.counts() == QueueCounts() else { throw Wrong("\(try await queues.0.counts())") }
    }
  }

  // MARK: Order

  /// The items of a group are delivered one at a time, in order, also if they are released.
  @Test(arguments: storeQueues.indices) func `a group keeps its order`(_ index: Int) async throws {
    let subject = Self.storeQueues[index]
    try await runSchedules("groups of \(subject.name)") { context in
      let queues = try await subject.open(context)
      let groups = Shared<[StoreKey: (next: Int, isLeased: Bool)]>([:])
      try await concurrently(4) { task in
        let queue = task.isMultiple(of: 2) ? queues.0 : queues.1
        if task < 2 {
          for number in 0..<3 { try await queue.enqueue(10 * task + number, group: StoreKey("group \(task)")) }
          return
        }
        var generator = context.generator("consumer \(task)")
        while true {
          let delivery = try await queue.nextDelivery(lease: .seconds(60)).get()
          if delivery.value == Self.end { return try await queue.acknowledge(delivery.receipt) }
          guard let name = delivery.group else { throw Wrong("an item without its group") }
          try groups.change { groups in
            let group = groups[name] ?? (0, false)
            guard !group.isLeased, delivery.value % 10 == group.next else {
              throw Wrong("item \(delivery.value) was delivered instead of \(group)")
            }
            groups[name] = (group.next, true)
          }
          await context.pause(upTo: 3, &generator)
          if delivery.attempt < 3, Int.random(in: 0..<3, using: &generator) == 0 {
            groups.change { $0[name]?.isLeased = false }
            try await queue.release(delivery.receipt, after: .zero)
            continue
          }
          let isLast = groups.change { groups in
            groups[name] = ((groups[name]?.next ?? 0) + 1, false)
            return groups.values.reduce(0) { $0 + $1.next } == 6
          }
          try await queue.acknowledge(delivery.receipt)
          if isLast { try await queue.enqueue([QueueInput(Self.end), QueueInput(Self.end)]) }
        }
      }
      try Self.checkTime(subject, context)
      guard try await queues.0.counts() == QueueCounts() else { throw Wrong("\(try await queues.0.counts())") }
    }
  }

  /// Of items that wait, a consumer gets the one with the highest priority, and of these the first.
  ///
  /// It passes over an item that another consumer of its object is about to lease, even if the item then goes to a consumer of
  /// another object.
  @Test(arguments: storeQueues.indices) func `the highest priority is first`(_ index: Int) async throws {
    let subject = Self.storeQueues[index]
    try await runSchedules("priorities of \(subject.name)") { context in
      let queues = try await subject.open(context)
      var generator = context.generator()
      let priorities = (0..<6).map { _ in Int.random(in: -1...1, using: &generator) }
      for item in priorities.indices { try await queues.0.enqueue(item, priority: priorities[item]) }
      let (time, found) = (Shared(0), Shared<[(item: Int, start: Int, end: Int, task: Int)]>([]))
      @Sendable func tick() -> Int {
        time.change { time in
          time += 1
          return time
        }
      }
      try await concurrently(3) { task in
        let queue = task == 0 ? queues.1 : queues.0
        for _ in 0..<2 {
          let start = tick()
          let delivery = try await queue.nextDelivery(lease: .seconds(60)).get()
          let end = tick()
          found.change { $0.append((delivery.value, start, end, task)) }
        }
      }
      guard found.value.map(\.item).sorted() == Array(0..<6) else { throw Wrong("\(found.value)") }
      for first in found.value {
        for later in found.value where first.end < later.start {
          let order = [first, later].map { (-priorities[$0.item], $0.item) }
          let mayHavePassedOver = found.value.contains { other in
            (other.task == 0) == (first.task == 0) && other.start < first.end && other.end > later.start
          }
          if !subject.isOneObject, mayHavePassedOver { continue }
          guard order[0] < order[1] else { throw Wrong("\(first) was delivered before \(later) of \(priorities)") }
        }
      }
    }
  }

  private static func checkTime(_ subject: Subject, _ context: ScheduledContext) throws {
    guard subject.wakesConsumers, context.clock.now.offset > .zero else { return }
    throw Wrong("a consumer was woken by a timer only, at \(context.clock.now.offset)")
  }

  // MARK: Cancellation

  /// Producers and consumers are cancelled at any moment: an item is in the queue if its producer was told so, and is acknowledged
  /// once, no lease is left, and the consumer that remains misses none.
  @Test(arguments: all.indices) func `cancellation loses nothing`(_ index: Int) async throws {
    let subject = Self.all[index]
    try await runSchedules("cancelled consumers of \(subject.name)") { context in
      let queues = try await subject.open(context)
      let (enqueued, consumed) = (Shared<[Int]>([]), Shared<[Int]>([]))
      @Sendable func consume(_ queue: any DurableQueue<Int>, while wants: () -> Bool) async throws {
        while wants() {
          let delivery = try await queue.nextDelivery(lease: .seconds(60)).get()
          if delivery.attempt > 1 { throw Wrong("item \(delivery.value) was delivered again") }
          // Also if the task is cancelled now.
          try await queue.acknowledge(delivery.receipt)
          consumed.change { $0.append(delivery.value) }
        }
      }
      // Another object may have had an item when this consumer passed it over, so the last item may come before others.
      let survivor = Task {
        try await consume(queues.1) {
          !consumed.value.contains(Self.end) || consumed.value.count <= enqueued.value.count
        }
      }
      let others = (0..<4).map { task in
        let task = Task {
          if task > 1 {
            let start = consumed.value.count
            return try await consume(task == 2 ? queues.1 : queues.0) { consumed.value.count < start + 2 }
          }
          for number in 0..<3 {
            try await queues.0.enqueue(10 * task + number)
            enqueued.change { $0.append(10 * task + number) }
          }
        }
        context.mayCancel(task)
        return task
      }
      for task in others.prefix(2) { try await Self.value(of: task) }
      // The consumers that were not cancelled may wait for more.
      for task in others.suffix(2) {
        context.cancel(task)
        try await Self.value(of: task)
      }
      try await queues.0.enqueue(Self.end)
      try await survivor.value
      try Self.checkTime(subject, context)
      guard consumed.value.sorted() == [Self.end] + enqueued.value.sorted(),
        try await queues.0.counts() == QueueCounts()
      else {
        throw Wrong("\(enqueued.value) enqueued, \(consumed.value) consumed, \(try await queues.0.counts())")
      }
    }
  }

  /// Waits for a task that may be cancelled.
  private static func value(of task: Task<Void, any Error>) async throws {
    do {
      try await task.value
    } catch is CancellationError {}
  }
}
