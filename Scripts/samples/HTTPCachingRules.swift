import HTTPTypes

var rules: HTTPCacheRules { standIn() }
var request: HTTPRequest {
  get { standIn() }
  set {}
}
var response: HTTPResponse {
  get { standIn() }
  set {}
}
var url: String { standIn() }
var stored: [String: [StoredResponse]] { standIn() }
var exchange: Exchange { standIn() }
var newResponse: StoredResponse { standIn() }
var waitingRequest: HTTPRequest { standIn() }
var now: Date { standIn() }
var sent: Date { standIn() }

func send(_ request: HTTPRequest) async throws -> HTTPResponse { standIn() }
func answer(_ request: HTTPRequest, with reuse: Reuse) {}
func save(_ storing: ResponseDecision.Storing) async throws {}

extension FreshnessSamples {
  static var response: StoredResponse { standIn() }
}

extension StoredResponseSamples {
  static var response: StoredResponse { standIn() }
  static func fetch(_ range: Range<Int64>) async throws {}
}
