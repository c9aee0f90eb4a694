import Hummingbird
import LarderCBOR
import LarderCache
import LarderHTTPCache
import LarderJSON
import LarderMetrics
import LarderSQLite

/// A middleware that refuses all users but administrators.
struct Administrators: RouterMiddleware {
  @concurrent func handle(
    _ request: Request, context: BasicRequestContext,
    next: @concurrent (Request, BasicRequestContext) async throws -> Response
  ) async throws -> Response { standIn() }
}

var administrators: Administrators { standIn() }
var inspector: Inspector { standIn() }
var router: Router<BasicRequestContext> { standIn() }
var password: String { standIn() }
var key: String { standIn() }
var value: String { standIn() }
var users: AnyDataStore<User> { standIn() }
var responses: AnyDataStore<[UInt8]> { standIn() }

extension MeasurementsSamples {
  static var users: MeteredStore<AnyDataStore<User>> { standIn() }
  static var cache: CachedStore<AnyDataStore<User>> { standIn() }
}
