import CallgrindRequests
import Dispatch
import Foundation
import Larder
import LarderCBOR
import LarderCache
import LarderExpiry
import LarderJSON
import LarderLMDB
import LarderMetrics

/// Runs hot paths of Larder for `Scripts/check-instructions`, which counts their instructions and allocations with valgrind.
///
/// The name of each count ends with the number of operations.
@main
enum InstructionCounts {
  private struct User: Codable, Equatable {
    let id: Int
    let name: String
    let email: String
    let tags: [String]
  }

  private static let user = User(
    id: 7, name: "Ada Lovelace", email: "ada@example.com", tags: ["analyst", "translator", "poetical scientist"])
  private static let keyCount = 1000
  private static let operationCount = 1000

  static func main() {
    let executor = FirstThreadExecutor()
    Task(executorPreference: executor) {
      do {
        try await countAll()
      } catch {
        print("\(error)")
        exit(1)
      }
      executor.stop()
    }
    executor.run()
  }

  private static func countAll() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID())").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }

    let memory = MemoryStore<User>()
    try await fill(memory)
    try await countGets("MemoryStore get", memory)
    try await count("MemoryStore set") { try await memory.setValue(user, forKey: key($0)) }
    try await countGets("AnyDataStore get", AnyDataStore(memory))
    try await countGets("MeteredStore get", memory.metered())

    let cached = memory.cached()
    try await countGets("CachedStore get of a cached value", cached)
    let small = memory.cached(CachedStoreConfiguration(entryLimit: 10))
    try await countGets("CachedStore get of a value that is not cached", small)

    let expiring = MemoryStore<Expiring<User>>().expiring(.after(.seconds(3600)))
    try await fill(expiring)
    try await countGets("ExpiringStore get", expiring)

    let codec = CBORCodec<User>()
    var bytes: [UInt8] = []
    try await count("CBORCodec encode") { _ in
      bytes.removeAll(keepingCapacity: true)
      try codec.encode(user, into: &bytes)
    }
    try await count("CBORCodec decode") { _ in consume(try codec.decode(bytes.span.bytes)) }

    let json = try await JSONFileStore<User>(path: folder + "/users.json")
    try await fill(json)
    try await countGets("JSONFileStore get", json)

    let lmdb = try await LMDBStore<User>(path: folder + "/users", durability: .buffered)
    try await fill(lmdb)
    try await countGets("LMDBStore get", lmdb)
    let pageSize = 100
    try await count("LMDBStore scan of an entry", operationCount / pageSize, of: pageSize) { _ in
      consume(try await lmdb.entries(in: .all, limit: pageSize))
    }
    // More batches than pages, because the threads of the writer allocate as they like.
    try await count("LMDBStore set of an entry in a batch", 100, of: pageSize) { batch in
      let changes = (0..<pageSize).map { BatchChange.set(key(batch * pageSize + $0), user) }
      try await lmdb.apply(ChangeBatch(changes))
    }
    try await lmdb.close()
    try await json.close()
  }

  private static func key(_ number: Int) -> StoreKey { StoreKey(integer: number % keyCount) }

  private static func fill(_ store: some DataStore<User>) async throws {
    try await store.apply(ChangeBatch((0..<keyCount).map { .set(key($0), user) }))
  }

  private static func countGets(_ name: String, _ store: some DataStore<User>) async throws {
    try await count(name) { consume(try await store.value(forKey: key($0))) }
  }

  /// Counts the instructions and allocations of operations, after running them twice without counting.
  ///
  /// - Parameters:
  ///   - name: The name of the count.
  ///   - roundCount: The number of calls of `body`.
  ///   - size: The number of operations in a call.
  private static func count(
    _ name: String, _ roundCount: Int = operationCount, of size: Int = 1, _ body: (Int) async throws -> Void
  ) async throws {
    let label = "\(name) \(roundCount * size)"
    for _ in 0..<2 {
      for number in 0..<roundCount { try await body(number) }
    }
    larder_callgrind_begin()
    for number in 0..<roundCount { try await body(number) }
    larder_callgrind_end(label)
  }

  @inline(never)
  private static func consume<Value>(_ value: Value) {}
}

/// Runs tasks on the first thread, so the operations are counted without changes between threads.
///
/// An asynchronous main function would end that thread, which valgrind does not survive.
private final class FirstThreadExecutor: TaskExecutor {
  /// The jobs that wait, and `nil` as the end.
  private let jobs = Locked<[UnownedJob?]>([])
  private let jobCount = DispatchSemaphore(value: 0)

  func enqueue(_ job: consuming ExecutorJob) { append(UnownedJob(job)) }

  func stop() { append(nil) }

  func run() {
    while true {
      jobCount.wait()
      guard let job = jobs.withLock({ $0.removeFirst() }) else { return }
      job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }

  private func append(_ job: UnownedJob?) {
    jobs.withLock { $0.append(job) }
    jobCount.signal()
  }
}
