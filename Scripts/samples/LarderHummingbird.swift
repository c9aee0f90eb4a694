import Hummingbird
import LarderCoordination
import LarderHTTPCache
import LarderSQLite

struct Account: Sendable {
  var id = ""
}

/// The context of a server that knows its users.
struct AppContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  var identity: Account?

  init(source: ApplicationRequestContextSource) { self.coreContext = .init(source: source) }

  func user() throws -> Account { standIn() }
}

var bytes: SQLiteStore<[UInt8]> { standIn() }
var persist: StorePersistDriver { standIn() }
var router: Router<AppContext> { standIn() }

@Sendable func pay(_ request: Request, _ context: AppContext) async throws -> HTTPResponse.Status { .ok }
