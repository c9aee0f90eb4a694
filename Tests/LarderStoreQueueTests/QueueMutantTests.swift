#if LMDB
import Larder
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// Queues with a fault each, which `QueueConformanceSuite` must find.
@Suite struct QueueMutantTests {
  enum Fault: String, CaseIterable, Sendable {
    case forgetsAcknowledgements, leasesNothing, acceptsStaleReceipts, reversesOrder, ignoresGroups, ignoresPriorities
    case ignoresDelays, ignoresIDs, neverBuries, enqueuesSeparately, losesWhenWaiting, ignoresExtensions
    case deliversWhilePaused, refusesWhilePaused, listsFirstLeasesOnly, ignoresBlockers, listsForeignSchedules

    /// The faults that no history finds.
    static let foundByNoHistory: Set<Fault> = [
      .losesWhenWaiting, .enqueuesSeparately, .deliversWhilePaused, .refusesWhilePaused, .listsFirstLeasesOnly,
      .ignoresBlockers, .listsForeignSchedules,
    ]

    /// The case that finds the fault.
    var detector: String {
      switch self {
      case .forgetsAcknowledgements, .leasesNothing: "402"
      case .acceptsStaleReceipts: "420"
      case .reversesOrder: "400"
      case .ignoresGroups: "431"
      case .ignoresPriorities: "430"
      case .ignoresDelays: "403"
      case .ignoresIDs: "404"
      case .neverBuries: "440"
      case .enqueuesSeparately: "406"
      case .losesWhenWaiting: "450"
      case .ignoresExtensions: "425"
      case .deliversWhilePaused, .refusesWhilePaused: "457"
      case .listsFirstLeasesOnly: "465"
      case .ignoresBlockers: "466"
      case .listsForeignSchedules: "467"
      }
    }
  }

  private typealias Queue = StoreQueue<MemoryStore<[UInt8]>, SampleValue?>

  private static func suite(of fault: Fault?) -> QueueConformanceSuite {
    QueueConformanceSuite(
      named: fault?.rawValue ?? "no fault", lacking: .persistence, rounds: 40,
      // Some faults make a case wait forever.
      timeLimit: fault == nil ? ConformanceSuite.timeLimitOfProcess : .seconds(fault == .losesWhenWaiting ? 2 : 30)
    ) { location in
      FaultyQueue(base: try await StoreQueueDeliveries.open(MemoryStore<[UInt8]>(), location), fault: fault)
    }
  }

  @Test(arguments: Fault.allCases) func `every fault is found`(_ fault: Fault) async throws {
    let detector = try #require(QueueMutantTests.suite(of: fault).cases.first { $0.id == fault.detector })
    await #expect(throws: ConformanceFailure.self) { try await detector.run() }
  }

  /// Histories find the faults that no single case was written for.
  @Test(arguments: Fault.allCases.filter { !Fault.foundByNoHistory.contains($0) })
  func `histories find the fault`(_ fault: Fault) async throws {
    let histories = try #require(QueueMutantTests.suite(of: fault).cases.first { $0.id == "470" })
    await #expect(throws: ConformanceFailure.self) { try await histories.run() }
  }

  @Test func `a queue without a fault passes`() async throws {
    let report = try await QueueMutantTests.suite(of: nil).run()
    #expect(report.failures.isEmpty, "\(report)")
    #expect(report.passed.count > 40)
  }

  /// A decorator that passes everything on but for its fault.
  private struct FaultyQueue: PassingStore, PausableQueue, InspectableQueue {
    typealias Value = SampleValue?

    let base: Queue
    let fault: Fault?

    @discardableResult
    func enqueue(_ inputs: [QueueInput<SampleValue?>]) async throws -> [EnqueuedItem] {
      if fault == .refusesWhilePaused, try await base.isPaused() { throw SampleValue.Refusal.encoding }
      let inputs = inputs.map { input in
        var input = input
        switch fault {
        case .ignoresGroups: input.group = nil
        case .ignoresPriorities: input.priority = 0
        case .ignoresDelays: input.delay = .zero
        case .ignoresIDs: input.id = nil
        default: break
        }
        return input
      }
      guard fault == .enqueuesSeparately else { return try await base.enqueue(inputs) }
      var items: [EnqueuedItem] = []
      for input in inputs { items += try await base.enqueue([input]) }
      return items
    }

    func receive(max: Int, lease: Duration) async throws -> [QueueDelivery<SampleValue?>] {
      let resumes = fault == .deliversWhilePaused ? try await base.isPaused() : false
      if resumes { try await base.resume() }
      let deliveries = try await base.receive(max: max, lease: lease)
      if resumes { try await base.pause() }
      if fault == .leasesNothing {
        _ = try await base.release(deliveries.map(\.receipt), after: .zero, countsAsAttempt: false)
      }
      return fault == .reversesOrder ? deliveries.reversed() : deliveries
    }

    func nextDelivery(lease: Duration) async throws -> Result<QueueDelivery<SampleValue?>, StoreError> {
      let delivery = try await base.nextDelivery(lease: lease)
      if fault == .losesWhenWaiting, case .success(let delivery) = delivery, delivery.number == 3 {
        try await base.acknowledge(delivery.receipt)
        return try await base.nextDelivery(lease: lease)
      }
      return delivery
    }

    func acknowledge(_ receipts: [DeliveryReceipt]) async throws -> [DeliveryReceipt] {
      if fault == .forgetsAcknowledgements { return [] }
      let stale = try await base.acknowledge(receipts)
      return fault == .acceptsStaleReceipts ? [] : stale
    }

    func release(
      _ receipts: [DeliveryReceipt], after delay: Duration?, countsAsAttempt: Bool
    ) async throws -> [DeliveryReceipt] {
      try await base.release(
        receipts, after: delay, countsAsAttempt: fault == .neverBuries ? false : countsAsAttempt)
    }

    func extend(_ receipts: [DeliveryReceipt], lease: Duration) async throws -> [DeliveryReceipt] {
      fault == .ignoresExtensions ? [] : try await base.extend(receipts, lease: lease)
    }

    func leasedItems(limit: Int, after position: StoreKey?) async throws -> QueuePage<HeldItem> {
      var page = try await base.leasedItems(limit: limit, after: position)
      if fault == .listsFirstLeasesOnly { page.next = nil }
      return page
    }

    func groups(limit: Int, after position: StoreKey?) async throws -> QueuePage<QueueGroup> {
      var page = try await base.groups(limit: limit, after: position)
      if fault == .ignoresBlockers { for index in page.entries.indices { page.entries[index].blocker = nil } }
      return page
    }

    func schedules(limit: Int, after position: StoreKey?) async throws -> QueuePage<QueueScheduleRecord> {
      var page = try await base.schedules(limit: limit, after: position)
      if fault == .listsForeignSchedules { page.entries.append(QueueScheduleRecord(name: "x", lastDueDate: nil)) }
      return page
    }
  }
}

extension QueueDelivery where Element == SampleValue? {
  fileprivate var number: Int64? { value?.integer }
}
#endif
