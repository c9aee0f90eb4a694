import FoundationNetworking
import LarderHTTPCache
import LarderSQLite

var url: URL { standIn() }

func consume(_ bytes: [UInt8]) {}

extension CachedURLSessionSamples {
  static var session: CachedURLSession { standIn() }
  static var request: URLRequest { standIn() }
}
