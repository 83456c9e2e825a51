//! Stop words. They are indexed, and removed from queries that have other words.
//!
//! Written without accents, because they are compared after folding.

use crate::language::Language;

/// A word is a stop word if it is one in languages that cover at least this share of the index: `die` is a stop word
/// in German and not in English.
const MIN_STOP_SHARE: f32 = 0.2;

/// Whether a query for an index with these languages and shares ignores a word. `certain` is the detected language of
/// the query; otherwise the shares of the languages decide.
pub(crate) fn is_stop_word(word: &str, languages: &[(Language, f32)], certain: Option<Language>) -> bool {
    languages
        .iter()
        .filter(|(language, _)| certain.is_none_or(|certain| certain == *language))
        .filter(|(language, _)| is_in_stop_list(*language, word))
        .map(|(_, share)| if certain.is_some() { 1.0 } else { *share })
        .sum::<f32>()
        >= MIN_STOP_SHARE
}

/// Whether a word is a stop word of a language.
fn is_in_stop_list(language: Language, word: &str) -> bool {
    stop_words(language.code()).split_ascii_whitespace().any(|stop| stop == word)
}

fn stop_words(code: &str) -> &'static str {
    match code {
        "eng" => {
            "a about above after again all also am an and any are as at be because been before being below between both \
             but by can could d did do does doing down during each few for from further had has have having he her here \
             hers him his how i if in into is it its just ll m me more most my no nor not of off on once only or other \
             our ours out over own please re s same shall she should so some such t than that the their theirs them then \
             there these they this those through to too under until up us ve very was we were what when where which \
             while who whom why will with would you your yours"
        }
        "deu" => {
            "aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei bin bis bist da damit \
             dann das dass dein deine dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch dort du \
             durch ein eine einem einen einer eines er es etwas euch euer fur gegen hab habe haben hat hatte hatten hier \
             hinter ich ihm ihn ihnen ihr ihre im in ins ist ja jede jedem jeden jeder jedes jene kann kein keine konnen \
             konnte machen man mein meine mich mir mit muss nach nicht nichts noch nun nur ob oder ohne sehr sein seine sich \
             sie sind so solche soll sollte sondern uber um und uns unser unter viel vom von vor war waren warum was weil \
             welche welchem welchen welcher welches wenn wer werden wie wieder will wir wird wo wurde wurden zu zum zur"
        }
        "fra" => {
            "a ai ainsi alors as au aucun aussi autre aux avec avoir avons avez c car ce cela ces cet cette ceux chaque \
             comme comment d dans de des deux devrait doit donc du elle elles en encore es est et etait etaient ete etes \
             etre eu fait faire font ici il ils j je juste l la laquelle le lequel les leur leurs lui m ma mais me meme mes \
             mon n ne ni non nos notre nous on ont ou par parce pas peu peut plus pour pourquoi qu quand que quel quelle \
             quelles quels qui s sa sans se sera ses si son sont sous sur t ta te tes ton tous tout toute toutes tres tu un \
             une vos votre vous y"
        }
        "spa" => {
            "a al algo ante antes aquel aqui asi aunque cada como con contra cual cuales cuando de del desde donde dos el \
             ella ellas ellos en entre era eran es esa esas ese eso esos esta estaba estan estas este esto estos fue fueron \
             ha hace han hasta hay la las le les lo los mas me mi mis mucho muy nada ni no nos nosotros o os otra otras otro \
             otros para pero poco por porque puede que quien se sea segun ser si sido sin sobre son su sus tambien tanto te \
             tiene todo todos tu tus un una uno unos vosotros y ya yo"
        }
        "ita" => {
            "a ad agli ai al alla alle allo anche ancora avere c che chi ci come con contro cosa cui d da dagli dai dal \
             dalla dalle dallo degli dei del della delle dello di dove due e ed egli era erano essere fa fra gli ha hanno ho \
             i il in io l la le lei li lo loro lui ma mi mia mio ne negli nei nel nella nelle nello no noi non nostro o ogni \
             per perche piu puo quale quali quando quanto quella quelle quelli quello questa queste questi questo se senza \
             si sia sono sta su sua sue sugli sui sul sulla suo suoi tra tu tutti tutto un una uno vi voi"
        }
        "por" => {
            "a ainda ao aos aquela aquele as ate cada com como da das de dela dele deles depois do dos e ela elas ele eles \
             em entre era eram essa esse esta estao estar estas este estes eu foi foram ha isso isto ja lhe mais mas me \
             mesmo meu minha muito na nao nas nem no nos nossa nosso num numa o os ou para pela pelas pelo pelos pode por \
             porque qual quais quando que quem sao se seja sem ser seu seus so sobre sua suas tambem tem tenho ter toda \
             todas todo todos tu um uma umas uns voce voces"
        }
        "nld" => {
            "aan al alle als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een en er ge geen \
             haar had heb hebben heeft hem het hier hij hoe hun ik in is ja je kan kon kunnen maar me meer men met mij mijn \
             moet na naar niet niets nog nu of om omdat ons ook op over te tegen toch toen tot u uit uw van veel voor waar \
             waarom want waren was wat we wel welke werd wie wij wil worden wordt zal ze zich zij zijn zo zou"
        }
        "swe" => {
            "alla allt att av blev bli blir da de dem den denna deras dess det detta dig din dina ditt du dar efter ej eller \
             en er ett fran for ha hade han hans har henne hennes hon honom hur har i icke in inom inte jag ju kan kunde man \
             med mellan men mig min mina mitt mot mycket ni nu nar nagon nagot nagra och om oss pa samma sedan sig sin sina \
             sitt ska skulle som sa till under upp ut utan vad var vara vart varfor vem vi vid vilka vilken vilket ar over"
        }
        "dan" | "nob" => {
            "alle alt at av bli ble blev blir da de deg dem den denne der deres det dette dig din disse du eller en end er et \
             etter efter for fra fordi fore ha hadde han hans har havde hende hendes henne hennes her hos hun hva hvad hvem \
             hver hvilke hvis hvor hvordan hvorfor i igjen ikke ind inn jeg kan kun kunne man mange med meg men mig min mit \
             mitt mot mod ned noe noen nogle nu na nar og ogsa om op opp os oss over pa sa samme seg selv sig sin sit skal \
             skulle som til ud under ut uten uden var ved vi vil vore vaere vart"
        }
        "rus" => {
            "а без бы был была были было быть в вам вас ваш вдруг во вот все всего всех вы где да даже для до его ее ей если \
             есть еще же за здесь и из или им их к как какая какие какои кто ли меня мне можно мои мы на над надо нас не него \
             нее неи нет ни них но ну о об он она они оно от очень по под после потому почему при с сам себя сеичас со так \
             также такои там тебя тем то тогда того тоже только том тот ты у уже хотя чего чеи чем что чтобы эта эти это этого \
             этои этом этот я"
        }
        "pol" => {
            "a aby albo ale ani az bardzo bez bo by byc byl byla bylo byly ci co czy czyli dla do gdy gdzie go i ich ile im \
             ja jak jako je jego jej jest jeszcze jezeli juz kazdy kiedy kto ktora ktore ktory ktorych lub ma mi mnie moze \
             mozna my na nad nam nas nie niz no o od on ona one oni oraz pan po pod poniewaz przed przez przy sa sie swoj ta \
             tak takie tam te tego tej ten to tu ty tych tylko tym u w we wiec wszystko z za ze"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_words_are_told_from_others() {
        assert!(is_in_stop_list(Language::ENGLISH, "the"));
        assert!(!is_in_stop_list(Language::ENGLISH, "invoice"));
        assert!(!is_in_stop_list(Language::ENGLISH, ""));
    }
}
