public import Larder

/// The other process that a ``ConformanceSuite`` starts to open a store in: two processes meet at one store, and one of them
/// is killed while it writes.
///
/// The suite is given a closure that starts the process and waits for its end. With Swift Testing an exit test does that;
/// the process, which calls ``run(_:open:)``, always ends by `SIGKILL` or another failure:
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
/// An exit test takes values from outside only with Swift 6.3 or later, and there are none on iOS, tvOS, watchOS and
/// visionOS. Instead of one, the closure may start any program that hands the order to ``run(_:open:)``.
///
/// A killed process loses nothing that it has handed to the system. So the suite finds stores that keep acknowledged writes
/// in memory, or whose files are in pieces while they are written; it does not find those that fail to synchronize their
/// files, which only a loss of power shows: see ``DiskTrial``.
public enum ConformanceChild {
  /// Starts a process that calls ``ConformanceChild/run(_:open:)``, and waits for its end.
  ///
  /// - Parameter order: What the process is to do; it has to be handed to `run` as it is.
  public typealias Start = @Sendable (_ order: String) async throws -> Void

  /// Does in this process what a suite in another one has ordered, and ends this process by `SIGKILL`.
  ///
  /// What goes wrong is reported to the suite.
  ///
  /// - Parameters:
  ///   - order: The order, as the suite's `child` closure was given it.
  ///   - open: Opens the store at a location, as the suite's closure does.
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
