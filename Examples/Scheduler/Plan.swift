import Larder
import LarderCBOR
import LarderCoordination
import LarderLMDB

/// A job that the leader has planned.
struct Job: Codable, Sendable, Equatable {
  /// The process that has planned it.
  var leader: String
  /// The number of the term in which it was planned.
  var term: UInt64
}

/// The jobs that several processes plan, of which one leads at a time.
struct Plan: Sendable {
  private let bytes: LMDBStore<[UInt8]>
  private let election: LeaderElection

  /// The jobs, by their numbers.
  let jobs: TypedView<LMDBStore<[UInt8]>, Job>
  private let counts: TypedView<LMDBStore<[UInt8]>, Int>

  /// Opens the plan in a folder, which all processes share.
  init(folder: String, lease: Duration) async throws {
    bytes = try await LMDBStore<[UInt8]>(path: folder, codec: .raw)
    jobs = bytes.typed(Job.self, prefix: "jobs/", codec: .cbor())
    counts = bytes.typed(Int.self, prefix: "counts/", codec: .cbor())
    let locks = try StoreLock(bytes, prefix: "locks/", configuration: StoreLockConfiguration(lease: lease))
    election = LeaderElection(locks, name: "scheduler")
  }

  /// Takes part in the election, and plans a job in each interval while this process leads.
  ///
  /// - Parameters:
  ///   - leader: The name of this process.
  ///   - interval: The time between two jobs.
  ///   - onTerm: A closure that is called when a term begins.
  func run(as leader: String, every interval: Duration, onTerm: (UInt64) -> Void) async throws {
    try await election.run { token in
      onTerm(token.number)
      while true {
        try await add(Job(leader: leader, term: token.number), requiring: token)
        try await Task.sleep(for: interval)
      }
    }
  }

  /// Plans the next job, only if this process still leads at the commit.
  private func add(_ job: Job, requiring token: FencingToken) async throws {
    try await bytes.transaction { tx in
      try await tx.require(token)
      let number = try await tx.value(forKey: "jobs", in: counts) ?? 0
      try await tx.setValue(job, forKey: StoreKey(integer: number), in: jobs)
      try await tx.setValue(number + 1, forKey: "jobs", in: counts)
      return .commit(())
    }
  }

  func close() async throws {
    try await bytes.close()
  }
}
