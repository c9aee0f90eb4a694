#if HTTPCache
@testable import HTTPCachingRules
import Testing

struct CacheStatusTests {
  @Test func `all parameters are written in the order of the RFC`() {
    var status = CacheStatus(isHit: true, forward: .varyMiss)
    #expect(CacheStatus().fieldValue(name: "Larder") == "Larder")
    (status.forwardStatus, status.timeToLive, status.detail) = (304, -7, "not-stored-tooLarge")
    (status.isStored, status.isCollapsed) = (true, true)
    #expect(
      status.fieldValue(name: "Larder")
        == "Larder;hit;fwd=vary-miss;fwd-status=304;ttl=-7;stored;collapsed;detail=not-stored-tooLarge")
  }

  @Test func `the body is from the store if it is a hit confirmed or stale`() {
    #expect(!CacheStatus(forward: .uriMiss).isBodyFromStore)
    #expect(CacheStatus(isHit: true).isBodyFromStore)
    var (confirmed, stale) = (CacheStatus(forward: .stale), CacheStatus(forward: .stale))
    #expect(!confirmed.isBodyFromStore)
    (confirmed.isValidated, stale.isStale) = (true, true)
    #expect(confirmed.isBodyFromStore && stale.isBodyFromStore)
  }
}
#endif
