import Foundation
public import Larder

/// The second process of a ``ConformanceSuite``, which shares a store with the first, or is killed while it writes.
///
/// You pass the suite a closure that starts the process and waits until it exits. With Swift Testing, use an exit test.
/// The process calls ``run(_:open:)`` and always exits by `SIGKILL` or another failure:
///
/// ```swift
/// static let suite: ConformanceSuite = ConformanceSuite(named: "MyStore", child: child, open: open)
///
/// @Sendable static func open(_ location: ConformanceLocation) async throws -> MyStore<SampleValue?> {
///   try await MyStore(path: location.path("store"), access: location.access)
/// }
///
/// @Sendable static func child(_ order: String) async throws {
///   await #expect(processExitsWith: .failure) { [order] in
///     await ConformanceChild.run(order, open: MyStoreTests.open)
///   }
/// }
/// ```
///
/// Exit tests can capture values only with Swift 6.3 or later, and they don't exist on iOS, tvOS, watchOS and visionOS.
/// The closure can instead start any program that passes the order to ``run(_:open:)``.
///
/// A killed process loses no data that it has passed to the operating system. So these cases find stores that keep
/// acknowledged writes in memory, and stores whose files are inconsistent while they are written. They don't find
/// stores that fail to synchronize their files, which only a power loss reveals; see ``DiskTrial``.
public enum ConformanceChild {
  /// A closure that starts a process that calls ``ConformanceChild/run(_:open:)``, and waits until it exits.
  ///
  /// - Parameter order: The order for the process. It must be passed to `run` unchanged.
  public typealias Start = @Sendable (_ order: String) async throws -> Void

  /// Carries out the order of a suite in another process, then ends this process by `SIGKILL`.
  ///
  /// Errors are reported to the suite.
  ///
  /// - Parameters:
  ///   - order: The order that the suite passed to its `child` closure.
  ///   - open: A closure that opens the store at a location, as the suite's closure does.
  public static func run<Store: DataStore>(
    _ order: String, open: @escaping @Sendable (ConformanceLocation) async throws -> Store
  ) async where Store.Value == SampleValue? {
    guard let order = ChildOrder(order) else { return ChildProcess.die() }
    let child = ChildProcess(order)
    do {
      switch order.work {
      case .share: try await child.share(open)
      case .write(let plan): try await child.write(plan, open)
      }
    } catch {
      child.report(.failed(text(of: error)))
    }
    ChildProcess.die()
  }
}

/// The process that a suite has started, which carries out its order and reports the results.
private struct ChildProcess: Sendable {
  private let order: ChildOrder
  private let location: ConformanceLocation
  /// The ID of the process that started this one.
  private let parent = getppid()

  init(_ order: ChildOrder) {
    self.order = order
    location = ConformanceLocation(existingFolder: order.folder)
  }

  /// Ends this process by `SIGKILL`.
  static func die() {
    kill(getpid(), SIGKILL)
  }

  /// Sends a report to the other process, or ends this process if the report cannot be written.
  func report(_ report: ChildReport) {
    do {
      let line = try JSONEncoder().encode(report) + [UInt8(ascii: "\n")]
      let handle = try FileHandle(forWritingTo: URL(filePath: order.exchange + "/reports"))
      // Written immediately, so that the report outlives this process.
      try handle.seekToEnd()
      try handle.write(contentsOf: line)
      try handle.close()
    } catch {
      ChildProcess.die()
    }
  }

  /// Waits until the other process takes a step.
  ///
  /// This process ends if the other process has exited or asks it to end, or after 60 seconds.
  private func wait(for step: ChildStep) async throws {
    let end = ContinuousClock.now + .seconds(60)
    while !FileManager.default.fileExists(atPath: "\(order.exchange)/\(step)") {
      let isOver = FileManager.default.fileExists(atPath: "\(order.exchange)/\(ChildStep.end)")
      if isOver || getppid() != parent || ContinuousClock.now > end { ChildProcess.die() }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  // MARK: The work

  /// Opens the store while the other process has it open, or after the other process closed it if the first opening is
  /// refused.
  func share<Store: DataStore>(
    _ open: @Sendable (ConformanceLocation) async throws -> Store
  ) async throws where Store.Value == SampleValue? {
    let store: Store
    do {
      store = try await open(location)
    } catch StoreError.Code.locked {
      report(.locked)
      try await wait(for: .isClosed)
      store = try await open(location)
    }
    try await report(contents(of: store))
    try await wait(for: .look)
    try await store.setValue(SampleValue("written"), forKey: "child")
    try await store.synchronize()
    try await report(contents(of: store))
    // This process ends with the store open. Its locks must then be free.
    try await wait(for: .end)
  }

  private func contents<Store: DataStore>(of store: Store) async throws -> ChildReport
  where Store.Value == SampleValue? {
    let entries = try await store.entries(in: .all, limit: .max)
    return ChildReport(holding: Entries(entries.map { ($0.key, $0.value) }) { $1 })
  }

  /// Writes one batch after another and reports each, until this process is killed.
  func write<Store: DataStore>(
    _ plan: ChildPlan, _ open: @Sendable (ConformanceLocation) async throws -> Store
  ) async throws where Store.Value == SampleValue? {
    let store = try await open(location)
    if case .beyond(let size) = plan.death { ChildProcess.die(writingBeyond: size) }
    for number in plan.first..<plan.first + ChildPlan.count {
      do {
        try await ChildBatch(number: number, seed: plan.seed).write(to: store)
        report(.acknowledged(number))
        if case .after(let delay) = plan.death, number == plan.first { ChildProcess.die(after: delay) }
        // With any other durability, a write that has returned outlives the process without synchronization.
        guard store.information.durability == .accepted, number.isMultiple(of: 4) else { continue }
        try await store.synchronize()
        report(.synchronized(number))
      } catch {
        // A thread that blocks the signal gets an error instead, in the middle of the same write.
        if case .beyond = plan.death { return }
        throw error
      }
    }
  }

  private static func die(after microseconds: UInt32) {
    Thread.detachNewThread {
      usleep(microseconds)
      ChildProcess.die()
    }
  }

  /// Ends this process in the middle of the first write that exceeds a file size, which the system cuts short.
  private static func die(writingBeyond size: UInt64) {
    signal(SIGXFSZ) { _ in kill(getpid(), SIGKILL) }
    var limit = rlimit(rlim_cur: rlim_t(size), rlim_max: rlim_t(size))
    #if canImport(Glibc)
    let code = setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    #else
    let code = setrlimit(RLIMIT_FSIZE, &limit)
    #endif
    if code != 0 { ChildProcess.die() }
  }
}
