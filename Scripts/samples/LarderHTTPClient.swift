import AsyncHTTPClient
import LarderHTTPCache
import LarderLMDB
import NIOCore

var cache: HTTPCache { standIn() }
var http: CachedHTTPClient { standIn() }
var request: HTTPClientRequest { standIn() }
var account: String { standIn() }
