import Hummingbird
import LarderCBOR
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
var key: String { standIn() }
var value: String { standIn() }
var users: AnyDataStore<User> { standIn() }
