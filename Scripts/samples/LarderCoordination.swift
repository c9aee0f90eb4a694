typealias View<Value: Sendable> = TypedView<AnyDataStore<[UInt8]>, Value>

struct Receipt: Codable, Sendable {
  var amount = 0
}

struct Bank: Sendable {
  func charge(_ order: Order) async throws -> Receipt { standIn() }
}

struct Row: Codable, Sendable {
  var key: StoreKey { standIn() }
}

/// A response of a web framework.
struct Response {
  enum Status {
    case ok, tooManyRequests
  }
  var status = Status.ok
  var headers: [String: String] = [:]
}

struct ImportIsRunning: Error {}

struct TooManyRequests: Error {
  var retryAfter: Duration
}

var bytes: AnyDataStore<[UInt8]> { standIn() }
var locks: StoreLock { standIn() }
var lock: HeldLock { standIn() }
var token: FencingToken { standIn() }
var election: LeaderElection { standIn() }
var client: String { standIn() }
var key: String { standIn() }
var body: [UInt8] { standIn() }
var requests: IdempotencyKeys<Receipt> { standIn() }
var accounts: View<Int> { standIn() }
var bank: Bank { standIn() }
var limiter: RateLimiter { standIn() }
var response: Response {
  get { standIn() }
  set {}
}

func schedule(requiring token: FencingToken) async throws {}
func importRows(requiring token: FencingToken) async throws {}

extension FencingTokenSamples {
  static var report: Report { standIn() }
  static var reports: View<Report> { standIn() }
}

extension HeldLockSamples {
  static var download: Task<Void, any Error> { standIn() }
}

extension StoreLockSamples {
  static var table: View<Row> { standIn() }
  static var newBalance: [UInt8] { standIn() }
  static func download() async throws -> [Row] { standIn() }
}
