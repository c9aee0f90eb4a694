#if HTTPCache
import HTTPTypes
import Larder
import LarderHTTPCache
import LarderTesting
import TestSupport
import Testing

/// An HTTP cache in many schedules: shared fetches, invalidations, revalidation, and readers of different speed.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct HTTPSchedules {
  private typealias Base = FaultyStore<MemoryStore<[UInt8]>>

  private static func open(
    _ base: Base, _ context: ScheduledContext, _ change: (inout HTTPCacheConfiguration) -> Void = { _ in }
  ) async throws -> HTTPCache {
    var configuration = HTTPCacheConfiguration.shared
    configuration.clock = context.clock
    configuration.now = { context.clock.date }
    change(&configuration)
    return try await HTTPCache(base, configuration: configuration)
  }

  private static func request(_ path: String, _ method: HTTPRequest.Method = .get) -> HTTPRequest {
    HTTPRequest(method: method, scheme: "https", authority: "example.com", path: path)
  }

  /// Reads a response, and returns the version of its body.
  private static func get(_ path: String, _ cache: HTTPCache, _ origin: VersionedOrigin) async throws -> Int {
    let response = try await cache.response(to: request(path)) { try await origin.answer($0) }
    guard response.head.status == .ok else { throw Wrong("status \(response.head.status)") }
    return try origin.version(of: try await response.body.bytes(upTo: 1_000_000))
  }

  // MARK: Shared fetches

  /// Callers of one URL share a fetch: each gets the whole body, those that are cancelled do not disturb the others, and the response
  /// is stored.
  @Test func `callers share a fetch`() async throws {
    // The cache cancels a fetch without callers, in the middle of which no other work may run.
    try await runSchedules("a shared fetch", switchesAtLocks: false) { context in
      let origin = VersionedOrigin(context, fields: [.cacheControl: "max-age=3600"])
      let cache = try await Self.open(context.slowStore(), context)
      let callers = (0..<4).map { caller in
        Task {
          var generator = context.generator("caller \(caller)")
          await context.pause(upTo: 6, &generator)
          return try await Self.get("/", cache, origin)
        }
      }
      for caller in callers.prefix(2) { context.mayCancel(caller) }
      for caller in callers.suffix(2) { _ = try await caller.value }
      for caller in callers.prefix(2) {
        do {
          _ = try await caller.value
        } catch is CancellationError where caller.isCancelled {}
      }
      // A fetch whose callers were all cancelled may still be ending when the next one begins.
      let cancelledCount = callers.count(where: \.isCancelled)
      guard origin.overlapCount <= cancelledCount else {
        throw Wrong("\(origin.overlapCount) fetches beside another one, after \(cancelledCount) cancellations")
      }
      // The fetch of a cancelled caller may ask the origin even now.
      let count = cache.statistics().hitCount
      _ = try await Self.get("/", cache, origin)
      guard cache.statistics().hitCount == count + 1 else { throw Wrong("the response was not stored") }
    }
  }

  /// The chunks of a large body, and their size.
  ///
  /// Memory has less than a half of them.
  private static let (chunkCount, chunkSize) = (12, 500_000)

  /// Reads a large body, and returns the time at its end.
  private static func readLargeBody(
    _ cache: HTTPCache, _ context: ScheduledContext, pause: Duration = .zero
  ) async throws -> Duration {
    let response = try await cache.response(to: request("/")) { _ in
      let body = AsyncThrowingStream<[UInt8], any Error>(unfolding: { [sent = Shared(0)] in
        await Task.yield()
        let number = sent.change { sent in
          defer { sent += 1 }
          return sent
        }
        return number < chunkCount ? [UInt8](repeating: UInt8(number), count: chunkSize) : nil
      })
      return HTTPForwardedResponse(
        head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=3600"]), body: body)
    }
    var count = 0
    for try await bytes in response.body {
      // Some of them, because a debug build takes long for all.
      for offset in stride(from: 0, to: bytes.count, by: 4099) where Int(bytes[offset]) != (count + offset) / chunkSize
      {
        throw Wrong("byte \(count + offset) is \(bytes[offset])")
      }
      count += bytes.count
      if pause > .zero { try await context.clock.sleep(for: pause) }
    }
    guard count == chunkCount * chunkSize else { throw Wrong("the body has ended after \(count) bytes") }
    return context.clock.now.offset
  }

  /// A slow reader never fails if the body is stored, and delays a fast one for at most the limit if it is not.
  @Test func `a slow reader does not stop others`() async throws {
    let tooSlow = Shared(0)
    let hasRun = try await runSchedules("a slow reader", share: 0.5) { context in
      let base = context.slowStore()
      var generator = context.generator()
      // The body is stored; or it is too large; or the store fails in the middle.
      let kind = Int.random(in: 0..<3, using: &generator)
      let cache = try await Self.open(base, context) { $0.largestBody = kind == 1 ? 1_000_000 : 10_000_000 }
      if kind == 2 { base.schedule(.error(.full), on: .update, number: Int.random(in: 2...4, using: &generator)) }
      let readers = [Duration.seconds(10), .zero].map { pause in
        Task { try await Self.readLargeBody(cache, context, pause: pause) }
      }
      let end = try await readers[1].value
      guard end <= .milliseconds(1100) else { throw Wrong("the fast reader has waited until \(end)") }
      do {
        _ = try await readers[0].value
      } catch let error as HTTPCacheError where error.code == .readerTooSlow && kind > 0 {
        tooSlow.change { $0 += 1 }
      }
    }
    #expect(!hasRun || tooSlow.value > 0)
  }

  /// A caller whose task runs late gets the body from its beginning, also if the body turns out to be too large for the store when
  /// memory does not have its beginning any more.
  @Test func `a late caller gets the whole body`() async throws {
    try await runSchedules("a late caller", share: 0.5) { context in
      let cache = try await Self.open(context.slowStore(), context) { $0.largestBody = 5_000_000 }
      _ = try await Self.readLargeBody(cache, context)
    }
  }

  // MARK: Invalidation

  /// After an unsafe request or an explicit invalidation has returned, no response from before is served, whatever the store
  /// does.
  @Test(arguments: [false, true], [false, true])
  func `an invalidated response is not served`(withErrors: Bool, withCancellation: Bool) async throws {
    let hits = Shared(0)
    let name = "invalidations\(withErrors ? ", errors" : "")\(withCancellation ? ", cancellation" : "")"
    let hasRun = try await runSchedules(name, switchesAtLocks: !withCancellation) { context in
      let base = context.slowStore()
      let origin = VersionedOrigin(context, fields: [.cacheControl: "max-age=3600"])
      let cache = try await Self.open(base, context)
      if withErrors { base.fail(withProbability: 0.06) }
      // The oldest version that a request may return.
      let oldest = Shared(1)
      let tasks = (0..<4).map { task in
        Task {
          var generator = context.generator("task \(task)")
          for _ in 0..<4 {
            await context.pause(upTo: 6, &generator)
            switch task {
            case 0:
              let response = try await cache.response(to: Self.request("/", .post)) { try await origin.answer($0) }
              let version = try origin.version(of: try await response.body.bytes(upTo: 1000))
              oldest.change { $0 = max($0, version) }
            case 1:
              let version = origin.change()
              do {
                try await cache.invalidate("https://example.com/")
              } catch let error as StoreError where withErrors && error.code == .ioFailed {}
              oldest.change { $0 = max($0, version) }
            default:
              let first = oldest.value
              let version = try await Self.get("/", cache, origin)
              guard version >= first else { throw Wrong("version \(version) was served after \(first)") }
            }
          }
        }
      }
      if withCancellation { for task in tasks.prefix(3) { context.mayCancel(task) } }
      for task in tasks {
        do {
          try await task.value
        } catch is CancellationError where task.isCancelled {}
      }
      hits.change { $0 += cache.statistics().hitCount }
    }
    #expect(!hasRun || hits.value > 0)
  }

  /// A response is served only while it is fresh, or after the origin has confirmed it.
  @Test func `a stale response is validated`() async throws {
    let validations = Shared(0)
    let hasRun = try await runSchedules("revalidation") { context in
      let origin = VersionedOrigin(context, fields: [.cacheControl: "max-age=4"], delay: .seconds(1))
      let cache = try await Self.open(context.slowStore(), context)
      try await concurrently(4) { task in
        var generator = context.generator("task \(task)")
        for _ in 0..<5 {
          try await context.clock.sleep(for: .seconds(Int.random(in: 0...5, using: &generator)))
          if task == 0 {
            origin.change()
          } else {
            let start = context.clock.now.offset
            let version = try await Self.get("/", cache, origin)
            // The age counts from the moment of the request.
            guard origin.isCurrent(version, since: start - .seconds(4)) else {
              throw Wrong("version \(version) was served at \(start), too late")
            }
          }
        }
      }
      validations.change { $0 += cache.statistics().validationCount }
    }
    #expect(!hasRun || validations.value > 0)
  }

  /// Requests that were under way when the origin began to fail do not delay the request that finds out that it works again.
  @Test func `an origin that has failed is asked again`() async throws {
    try await runSchedules("an origin that fails") { context in
      let origin = VersionedOrigin(context, fields: [.cacheControl: "max-age=1, stale-if-error=86400"])
      let cache = try await Self.open(context.slowStore(), context)
      for page in 0..<6 { _ = try await Self.get("/\(page)", cache, origin) }
      while cache.statistics().storedCount < 6 { try await context.clock.sleep(for: .milliseconds(1)) }
      try await context.clock.sleep(for: .seconds(60))
      try await concurrently(6) { page in
        // The first failure may be that of one URL. The second one is a second later, and concerns the origin.
        let response = try await cache.response(to: Self.request("/\(page)")) { _ in
          try await context.clock.sleep(for: .milliseconds(page == 0 ? 1 : 1100))
          throw Wrong("the network is down")
        }
        guard response.head.status == .ok else { throw Wrong("status \(response.head.status)") }
      }
      // The next request is due a second after the origin has begun to fail, and half a second later at most.
      try await context.clock.sleep(for: .milliseconds(1600))
      let count = origin.requestCount
      _ = try await Self.get("/5", cache, origin)
      // The stored response may answer while the origin is being asked.
      try await context.clock.sleep(for: .milliseconds(100))
      guard origin.requestCount == count + 1 else { throw Wrong("the origin was not asked again") }
    }
  }

  /// Invalidations that have failed are carried out once each when the store works again, however many requests come.
  @Test func `failed invalidations are repeated once`() async throws {
    try await runSchedules("failed invalidations") { context in
      let base = context.slowStore()
      let origin = VersionedOrigin(context, fields: [.cacheControl: "max-age=3600"])
      let cache = try await Self.open(base, context)
      for page in 0..<4 { _ = try await Self.get("/\(page)", cache, origin) }
      while cache.statistics().storedCount < 4 { try await context.clock.sleep(for: .milliseconds(1)) }
      for operation in [StoreOperation.update, .apply] {
        base.schedule(.error(.full), on: operation, probability: 1)
      }
      let version = origin.change()
      // Each of two pages twice.
      try await concurrently(4) { task in
        do {
          try await cache.invalidate("https://example.com/\(task % 2)")
          throw Wrong("an invalidation has succeeded")
        } catch StoreError.Code.full {}
      }
      @Sendable func requestAll() async throws {
        try await concurrently(4) { page in
          let found = try await Self.get("/\(page)", cache, origin)
          guard found == version || page >= 2 else { throw Wrong("page \(page) has version \(found)") }
        }
      }
      try await requestAll()
      base.clearFaults()
      for _ in 0..<4 {
        try await context.clock.sleep(for: .seconds(2))
        try await requestAll()
      }
      // The log of invalidations.
      let logged = try base.base.count(in: .prefix("http/i"))
      guard logged == 2 else { throw Wrong("\(logged) invalidations were carried out") }
      guard origin.requestCount(of: "/3") == 1 else { throw Wrong("a page that was not invalidated was fetched again") }
    }
  }
}

/// An origin whose resource changes, and whose answers suspend.
private final class VersionedOrigin: Sendable {
  private struct State: Sendable {
    var version = 1
    /// The time when a version was replaced.
    var replaced: [Int: Duration] = [:]
    var paths: [String?] = []
    /// The number of answers that are being prepared for requests that are not cancelled.
    var activeCount = 0
    var overlapCount = 0
    var generator: SeededGenerator
  }

  private let context: ScheduledContext
  private let fields: HTTPFields
  private let delay: Duration
  private let state: Shared<State>

  init(_ context: ScheduledContext, fields: HTTPFields, delay: Duration = .zero) {
    (self.context, self.fields, self.delay) = (context, fields, delay)
    state = Shared(State(generator: context.generator("origin")))
  }

  var requestCount: Int { state.value.paths.count }
  var overlapCount: Int { state.value.overlapCount }

  func requestCount(of path: String) -> Int { state.value.paths.count { $0 == path } }

  /// Begins a new version.
  @discardableResult
  func change() -> Int {
    let now = context.clock.now.offset
    return state.change { state in
      state.replaced[state.version] = now
      state.version += 1
      return state.version
    }
  }

  /// Returns whether a version was current at some time since a moment.
  func isCurrent(_ version: Int, since time: Duration) -> Bool { (state.value.replaced[version] ?? time) >= time }

  /// Returns the version of a body.
  ///
  /// - Throws: ``Wrong`` if it is not whole.
  func version(of body: [UInt8]) throws -> Int {
    guard let first = body.first, body == Self.body(of: Int(first)).flatMap(\.self) else {
      throw Wrong("a body with \(body.count) bytes of version \(body.first ?? 0)")
    }
    return Int(first)
  }

  private static func body(of version: Int) -> [[UInt8]] {
    (0..<3).map { [UInt8](repeating: UInt8(version), count: 10 + 10 * $0 + version) }
  }

  private func pause() async throws {
    let (yields, sleeps) = state.change { state in
      (Int.random(in: 0..<4, using: &state.generator), Bool.random(using: &state.generator))
    }
    for _ in 0..<yields { await Task.yield() }
    if sleeps, delay > .zero { try await context.clock.sleep(for: delay) }
  }

  /// Runs code that counts as working on a request until it ends or is cancelled.
  ///
  /// - Parameter hasOverlapped: Whether the request has been beside another one, which counts once.
  private func working<Result: Sendable>(
    _ hasOverlapped: Shared<Bool>, _ body: () async throws -> Result
  ) async throws -> Result {
    let isActive = Shared(true)
    @Sendable func end() {
      let wasActive = isActive.change { isActive in
        defer { isActive = false }
        return isActive
      }
      if wasActive { state.change { $0.activeCount -= 1 } }
    }
    state.change { state in
      state.activeCount += 1
      guard state.activeCount > 1, !Task.isCancelled, !hasOverlapped.value else { return }
      hasOverlapped.change { $0 = true }
      state.overlapCount += 1
    }
    defer { end() }
    return try await withTaskCancellationHandler(operation: body, onCancel: end)
  }

  func answer(_ request: HTTPRequest) async throws -> HTTPForwardedResponse {
    state.change { $0.paths.append(request.path) }
    let hasOverlapped = Shared(false)
    return try await working(hasOverlapped) {
      try await pause()
      let version = request.method == .post ? change() : state.value.version
      try await pause()
      let tag = "\"\(version)\""
      var head = HTTPResponse(status: .ok, headerFields: fields)
      head.headerFields[.eTag] = tag
      if request.headerFields[.ifNoneMatch] == tag {
        head.status = .notModified
        return HTTPForwardedResponse(head: head)
      }
      let rest = Shared(Self.body(of: version)[...])
      return HTTPForwardedResponse(
        head: head,
        body: AsyncThrowingStream<[UInt8], any Error>(unfolding: { [self] in
          try await working(hasOverlapped) {
            try await pause()
            return rest.change { $0.popFirst() }
          }
        }))
    }
  }
}
#endif
