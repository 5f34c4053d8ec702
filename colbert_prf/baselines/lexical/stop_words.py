"""English words that say little about what a text is about."""

from __future__ import annotations

__all__ = ["ENGLISH"]

ENGLISH = frozenset(
    """
a about above across after afterwards again against ago ah albeit all almost alone along already also although always
am amid among amongst an and another any anybody anyhow anyone anything anyway anywhere apart are aren around as aside
at away b back be became because become becomes becoming been before beforehand behind being below beside besides
between beyond both but by c came can cannot cant co come comes could couldn d did didn do does doesn doing don done
down downwards during e each eg either else elsewhere enough especially et etc even ever every everybody everyone
everything everywhere ex except f far few fewer for former formerly forth from further furthermore g get gets getting
go goes going gone got gotten h had hadn has hasn have haven having he hence her here hereafter hereby herein hereupon
hers herself hi him himself his hither how howbeit however i ie if in inasmuch indeed insofar instead into is isn it
its itself j just k l lately later latter latterly least less lest let lets like likely ll m many may maybe me
meanwhile merely might mine more moreover most mostly much must my myself n namely neither never nevertheless no
nobody non none nonetheless nor not nothing notwithstanding now nowhere o obviously of off often oh ok okay on once
one ones only onto or other others otherwise ought our ours ourselves out over own p per perhaps please plus q quite r
rather re really regardless s said same saw say saying says see seeing seem seemed seeming seems seen several shall
she should shouldn since so some somebody somehow someone something sometime sometimes somewhat somewhere soon still
such t tends than that thats the their theirs them themselves then thence there thereafter thereby therefore therein
theres thereupon these they think this those though through throughout thru thus till to together too toward towards
twice u un under underneath unfortunately unless unlike unlikely until unto up upon us usually v ve very via viz vs w
was wasn we well were weren what whatever when whence whenever where whereafter whereas whereby wherein whereupon
wherever whether which whichever while whither who whoever whom whomever whose why will with within without won would
wouldn x y yes yet you your yours yourself yourselves z
""".split()
)
"""Function words, their contractions without the apostrophe, single letters, and the commonest adverbs."""
