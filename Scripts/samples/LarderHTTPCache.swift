import HTTPTypes
import LarderLMDB
import LarderSQLite

struct Client: Sendable {
  func send(_ request: HTTPRequest) async throws -> (HTTPResponse, [UInt8]) { standIn() }
}

var store: LMDBStore<[UInt8]> { standIn() }
var cache: HTTPCache { standIn() }
var client: Client { standIn() }
var request: HTTPRequest { standIn() }
var forward: HTTPCache.Forward { standIn() }
var configuration: HTTPCacheConfiguration {
  get { standIn() }
  set {}
}
var response: HTTPCacheResponse { standIn() }
var inspector: HTTPCacheInspector { standIn() }

extension HTTPCacheInspectorSamples {
  static var response: HTTPStoredResponse { standIn() }
}
