import Dispatch
import Larder
import LarderTesting
import Synchronization
import TestSupport

/// A store in memory that says where it writes, and notes who wrote there.
final class PlacedStore: ForwardingDecorator {
  /// Runs tasks on a serial queue.
  private final class QueueExecutor: TaskExecutor {
    private static let mark = DispatchSpecificKey<Bool>()
    private let queue = DispatchQueue(label: "PlacedStore")

    init() { queue.setSpecific(key: QueueExecutor.mark, value: true) }

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    static var isHere: Bool { DispatchQueue.getSpecific(key: mark) ?? false }
  }

  /// How many commits were made.
  struct Commits: Sendable {
    var atItsPlace = 0
    var elsewhere = 0
    /// The changes of the largest that was made elsewhere, and of each, in order.
    var largestElsewhere = 0
    var sizes: [Int] = []
  }

  typealias Value = Int

  let base = MemoryStore<Int>(name: "placed")
  private let executor = QueueExecutor()
  private let noted = Mutex(Commits())
  private let clock: ManualClock?
  private let commitTime: Duration
  private let condition = Mutex<(@Sendable (_ changeCount: Int) -> Bool)?>(nil)

  /// Makes a store.
  ///
  /// - Parameters:
  ///   - clock: A clock that each commit moves; none unless given.
  ///   - commitTime: By how much, whatever is committed; not at all unless given.
  init(clock: ManualClock? = nil, commitTime: Duration = .zero) {
    self.clock = clock
    self.commitTime = commitTime
  }

  /// Lets every commit wait from now on.
  ///
  /// - Parameter condition: Whether a commit of so many changes may go on.
  func wait(until condition: @escaping @Sendable (_ changeCount: Int) -> Bool) {
    self.condition.withLock { $0 = condition }
  }

  var commits: Commits { noted.withLock { $0 } }

  var information: StoreInformation {
    var information = base.information
    information.writeExecutor = executor
    return information
  }

  func apply(_ changes: ChangeBatch<Int>) async throws {
    let isHere = QueueExecutor.isHere
    // So that others come meanwhile, and wait.
    for _ in 0..<10 { await Task.yield() }
    if let condition = condition.withLock({ $0 }) {
      await waitUntil { condition(changes.count) }
    }
    noted.withLock { commits in
      if isHere {
        commits.atItsPlace += 1
      } else {
        commits.elsewhere += 1
        commits.largestElsewhere = max(commits.largestElsewhere, changes.count)
      }
      commits.sizes.append(changes.count)
    }
    clock?.advance(by: commitTime)
    try base.apply(changes)
  }

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Int?]) throws -> Result
  ) async throws -> Result {
    try base.update(keys, body)
  }

  func synchronize() async throws { try base.synchronize() }

  func close() async throws { base.close() }
}
