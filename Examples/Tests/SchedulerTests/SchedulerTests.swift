import ExampleSupport
import Foundation
import Larder
import Testing

@testable import Scheduler

/// Two processes of the scheduler, of which the leader is suspended, and then killed.
@Suite("Two schedulers with one leader")
struct SchedulerTests {
  @Test func `Another process leads after the leader was suspended or killed, and no job is planned by an old leader`()
    async throws
  {
    let folder = FileManager.default.temporaryDirectory.appending(path: "larder-scheduler-\(UUID().uuidString)")
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: folder) } }
    let plan = try await Plan(folder: folder.path, lease: .seconds(1))
    var processes = ["a": try start("a", folder.path), "b": try start("b", folder.path)]
    defer { for process in processes.values { process.signal(SIGKILL) } }

    let first = try #require(try await leader(of: plan, afterTerm: 0, within: .seconds(60)))
    let suspended = try #require(processes[first.leader])
    let second = try await suspend(suspended, in: plan, afterTerm: first.term)
    #expect(second.leader != first.leader)
    // It believes that it leads, and its next job is refused.
    suspended.signal(SIGCONT)
    try await Task.sleep(for: .milliseconds(300))
    try await #require(processes[second.leader]).end()
    processes[second.leader] = nil
    let third = try #require(try await leader(of: plan, afterTerm: second.term, within: .seconds(60)))
    #expect(third.leader == first.leader)

    for process in processes.values { try await process.end() }
    processes = [:]
    let jobs = try await plan.jobs.entries(in: .all, limit: .max).map(\.value)
    #expect(jobs.map(\.term) == jobs.map(\.term).sorted())
    let leaders = Dictionary(grouping: jobs, by: \.term).mapValues { Set($0.map(\.leader)).count }
    #expect(leaders.values.allSatisfy { $0 == 1 })
    try await plan.close()
  }

  /// Waits for a job of a later term, and returns it, or `nil` if there isn't one within some time.
  private func leader(of plan: Plan, afterTerm term: UInt64, within limit: Duration) async throws -> Job? {
    let end = ContinuousClock.now + limit
    while ContinuousClock.now < end {
      let latest = try await plan.jobs.entries(in: .all, limit: 1, order: .descending).first?.value
      if let latest, latest.term > term { return latest }
      try await Task.sleep(for: .milliseconds(20))
    }
    return nil
  }

  /// Suspends a leader until another process leads.
  ///
  /// A process that is suspended in the middle of a commit keeps the lock of the database, so it is suspended again.
  private func suspend(_ process: ExampleProcess, in plan: Plan, afterTerm term: UInt64) async throws -> Job {
    for _ in 0..<10 {
      process.signal(SIGSTOP)
      if let job = try await leader(of: plan, afterTerm: term, within: .seconds(6)) { return job }
      process.signal(SIGCONT)
      try await Task.sleep(for: .milliseconds(30))
    }
    throw CancellationError()
  }

  private func start(_ name: String, _ folder: String) throws -> ExampleProcess {
    try ExampleProcess("Scheduler", [folder, name])
  }
}
